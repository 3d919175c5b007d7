package placement

import (
	"fmt"

	"molrun/app/base/unit"
	"molrun/app/task/protocol"
)

// Machine is where an algorithm may run. All zero stands for a machine of
// unknown size, such as a cluster.
type Machine struct {
	CPUs        int
	MemoryBytes int64
	GPUs        int
	Local       bool // programs run on this machine, so that it can look for them

	// CountGPUs returns the number of GPUs where it can change; a very large number if it is
	// unknown. Nil: GPUs says it.
	CountGPUs func() int

	Site map[string]string // where the site has weights, databases and programs, by name
	// NoSandbox says why programs run without a sandbox there, "" if they don't or it is
	// not known. Nil is not known.
	NoSandbox func() string
	// GPUMemory returns the bytes of the smallest GPU, 0 if that is not known. Nil is not
	// known.
	GPUMemory func() int64
	// Lacks says which container images and environment modules are missing; nil: it
	// is not known.
	Lacks func(protocol.Sandbox) []string
}

// GPUCount returns the number of GPUs.
func (m Machine) GPUCount() int {
	if m.CountGPUs == nil {
		return m.GPUs
	}
	return m.CountGPUs()
}

// SandboxMissing calls NoSandbox.
func (m Machine) SandboxMissing() string {
	if m.NoSandbox == nil {
		return ""
	}
	return m.NoSandbox()
}

// Devices are the very CPUs and GPUs that a job has while it runs.
type Devices struct {
	GPUs  []string `json:"gpus,omitempty"`  // as CUDA_VISIBLE_DEVICES names them
	Cards []string `json:"cards,omitempty"` // the UUIDs of their cards, if any of them is an instance (MIG)
	CPUs  []int    `json:"cpus,omitempty"`  // to which it is pinned; none: to no ones of its own
}

// Resources are what a job needs or a machine offers.
type Resources struct {
	CPUs        int   `json:"cpus"`
	MemoryBytes int64 `json:"memoryBytes"`
	GPUs        int   `json:"gpus"`
}

// Max returns the larger amount of each.
func (r Resources) Max(other Resources) Resources {
	return Resources{max(r.CPUs, other.CPUs), max(r.MemoryBytes, other.MemoryBytes), max(r.GPUs, other.GPUs)}
}

// Text returns the resources in words.
func (r Resources) Text() string {
	text := fmt.Sprintf("%s and %s of memory", unit.Count(r.CPUs, "CPU"), unit.Bytes(r.MemoryBytes))
	if r.GPUs > 0 {
		text += ", with " + unit.Count(r.GPUs, "GPU")
	}
	return text
}

// Node is what a node offers to one job.
type Node struct {
	CPUs        int
	MemoryBytes int64
	GPUs        int
	Seconds     int64 // a job's longest run time
}
