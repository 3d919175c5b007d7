package placement

// The executors that there are.
const (
	Local = "local"
	Slurm = "slurm"
)

// executorAny is what an algorithm says that runs anywhere.
const Any = "any"
