package placement

// The executors.
const (
	Local = "local"
	Slurm = "slurm"
)

// Any is the executor of an algorithm that runs anywhere.
const Any = "any"
