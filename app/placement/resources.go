package placement

// Machine is what readiness is judged by. All zero stands for a machine of
// unknown size, such as a cluster.
type Machine struct {
	CPUs        int
	MemoryBytes int64
	GPUs        int
	Local       bool // programs run here, so they can be looked for
}

// Resources are what a job needs or a machine has.
type Resources struct {
	CPUs        int   `json:"cpus"`
	MemoryBytes int64 `json:"memoryBytes"`
	GPUs        int   `json:"gpus"`
}

// Node is what a node of a cluster has for one job.
type Node struct {
	CPUs        int
	MemoryBytes int64
	GPUs        int
	Seconds     int64 // that a job may run
}
