// Package host works out what a configuration means on this machine: the
// capacity for jobs, the algorithms that are ready, the options of executors,
// and the connections that its open-file limit allows.
package host

import (
	"fmt"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/config"
	"molrun/app/executor/local"
	"molrun/app/placement"
)

// Host is this machine as a configuration uses it.
type Host struct {
	Capacity app.Capacity // what jobs may use: as configured, else as detected

	config config.Config
}

// Of looks at this machine. Along with an error comes a Host on which whatever
// could not be detected counts as absent.
func Of(c config.Config) (Host, error) {
	capacity, err := local.Detect("")
	r := c.Runner
	if r.CPUs > 0 {
		capacity.CPUs = r.CPUs
	}
	if r.Memory > 0 {
		capacity.MemoryBytes = int64(r.Memory)
	}
	if !r.GPUs.Auto() {
		capacity.GPUs = r.GPUs
	}
	return Host{Capacity: capacity, config: c}, err
}

// Machine returns the host as algorithms see it.
func (h Host) Machine() placement.Machine {
	return placement.Machine{
		CPUs: h.Capacity.CPUs, MemoryBytes: h.Capacity.MemoryBytes, GPUs: len(h.Capacity.GPUs), Local: true,
	}
}

// Machines returns the machine of each executor. Nodes of a cluster may have any
// size.
func (h Host) Machines() map[string]placement.Machine {
	machines := map[string]placement.Machine{placement.Local: h.Machine()}
	if h.config.Slurm.On() {
		machines[placement.Slurm] = placement.Machine{}
	}
	return machines
}

// Missing lists what an algorithm lacks on its default executor. Of a cluster
// only its absence is known.
func (h Host) Missing(a *algorithm.File) []string {
	executor := a.Executor
	if executor == "any" {
		executor = h.config.Runner.Executor
	}
	machine, configured := h.Machines()[executor]
	if !configured {
		return []string{fmt.Sprintf("the executor %q is not configured", executor)}
	}
	return a.Missing(machine)
}
