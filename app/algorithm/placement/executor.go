package placement

// Names of the executors.
const (
	Local = "local"
	Slurm = "slurm"
)

// Any is the executor of an algorithm that runs on any executor.
const Any = "any"
