package placement

// Machine is where an algorithm may run. All zero stands for a machine of
// unknown size, such as a cluster.
type Machine struct {
	CPUs        int
	MemoryBytes int64
	GPUs        int
	Local       bool // programs run on this machine, so that it can look for them
}

// Resources are what a job needs or a machine offers.
type Resources struct {
	CPUs        int   `json:"cpus"`
	MemoryBytes int64 `json:"memoryBytes"`
	GPUs        int   `json:"gpus"`
}

// Node is what a node offers to one job.
type Node struct {
	CPUs        int
	MemoryBytes int64
	GPUs        int
	Seconds     int64 // a job's longest run time
}
