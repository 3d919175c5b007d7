package placement

import (
	"fmt"

	"molrun/app/base/unit"
	"molrun/app/task/protocol"
)

// Machine describes where an algorithm can run. The zero value is a machine of unknown
// size, such as a cluster.
type Machine struct {
	CPUs        int
	MemoryBytes int64
	GPUs        int
	Local       bool // programs run on this machine, so their presence can be checked

	// CountGPUs returns the current number of GPUs, for machines on which it can change.
	// It returns a very large number if it is unknown. If CountGPUs is nil, the number is
	// GPUs.
	CountGPUs func() int

	Site map[string]string // paths of weights, databases and programs at this site, by name
	// NoSandbox explains why programs run without a sandbox there, or returns "" if they
	// run in one or this is unknown. Nil means unknown.
	NoSandbox func() string
	// GPUMemory returns the memory of the smallest GPU in bytes, or 0 if unknown. A nil
	// GPUMemory means unknown.
	GPUMemory func() int64
	// MissingEnvironment returns a message for each missing container image and environment module.
	// Nil means unknown.
	MissingEnvironment func(protocol.Sandbox) []string
}

// GPUCount returns the number of GPUs.
func (m Machine) GPUCount() int {
	if m.CountGPUs == nil {
		return m.GPUs
	}
	return m.CountGPUs()
}

// SandboxMissing returns the result of NoSandbox, or "" if NoSandbox is nil.
func (m Machine) SandboxMissing() string {
	if m.NoSandbox == nil {
		return ""
	}
	return m.NoSandbox()
}

// Devices lists the specific CPUs and GPUs assigned to a running job.
type Devices struct {
	GPUs  []string `json:"gpus,omitempty"`  // as in CUDA_VISIBLE_DEVICES
	Cards []string `json:"cards,omitempty"` // UUIDs of the physical GPUs, if any of GPUs is a MIG instance
	CPUs  []int    `json:"cpus,omitempty"`  // CPUs to which the job is pinned; empty if not pinned
}

// Resources are what a job needs or a machine offers.
type Resources struct {
	CPUs        int   `json:"cpus"`
	MemoryBytes int64 `json:"memoryBytes"`
	GPUs        int   `json:"gpus"`
}

// Max returns the maximum of each resource.
func (r Resources) Max(other Resources) Resources {
	return Resources{max(r.CPUs, other.CPUs), max(r.MemoryBytes, other.MemoryBytes), max(r.GPUs, other.GPUs)}
}

// Text describes the resources in words.
func (r Resources) Text() string {
	text := fmt.Sprintf("%s and %s of memory", unit.Count(r.CPUs, "CPU"), unit.Bytes(r.MemoryBytes))
	if r.GPUs > 0 {
		text += ", with " + unit.Count(r.GPUs, "GPU")
	}
	return text
}

// Node describes what a node offers to one job.
type Node struct {
	CPUs        int
	MemoryBytes int64
	GPUs        int
	Seconds     int64 // maximum run time of a job
}
