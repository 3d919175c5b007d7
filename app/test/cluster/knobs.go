package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// Knobs describe how a cluster differs from the default of two nodes with four CPUs, 4000
// MiB and two GPUs each. Zero means the default.
type Knobs struct {
	Nodes         int
	CPUs          int // per node; can exceed the CPUs of the machine
	MemoryMiB     int // per node
	NoGPUs        bool
	NoAccounting  bool   // no slurmdbd: sacct is disabled
	MinJobAge     int    // seconds that the controller remembers a finished job, default 300
	SlurmdTimeout int    // seconds until an unresponsive node is DOWN, default 10
	KillWait      int    // seconds from SIGTERM to SIGKILL, default 3
	BatchStart    int    // seconds a job can take to start on its node, default 10; raise it for many jobs on a busy machine
	Cgroup        bool   // enforce memory limits with cgroups, if they are writable
	Extra         string // additional lines for slurm.conf
}

// environ returns the knobs as environment variables for slurm-up. It writes Extra to a
// file in dir.
func (k Knobs) environ(dir string, port int) ([]string, error) {
	env := []string{fmt.Sprintf("SLURM_TEST_PORT=%d", port)}
	number := func(name string, n int) {
		if n > 0 {
			env = append(env, fmt.Sprintf("SLURM_TEST_%s=%d", name, n))
		}
	}
	number("NODES", k.Nodes)
	number("CPUS", k.CPUs)
	number("MEM", k.MemoryMiB)
	number("MIN_JOB_AGE", k.MinJobAge)
	number("SLURMD_TIMEOUT", k.SlurmdTimeout)
	number("KILL_WAIT", k.KillWait)
	number("BATCH_START", k.BatchStart)
	if k.NoGPUs {
		env = append(env, "SLURM_TEST_GPUS=0")
	}
	if k.NoAccounting {
		env = append(env, "SLURM_TEST_ACCT=0")
	}
	if k.Cgroup {
		env = append(env, "SLURM_TEST_CGROUP=1")
	}
	if k.Extra == "" {
		return env, nil
	}
	file := filepath.Join(dir, "extra.conf")
	return append(env, "SLURM_TEST_EXTRA="+file), os.WriteFile(file, []byte(k.Extra), 0o644)
}
