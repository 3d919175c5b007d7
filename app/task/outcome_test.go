package task

import (
	"path/filepath"
	"syscall"
	"testing"

	"molrun/app/task/process"
	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

// standInCgroup makes a folder with control files that stands for the cgroup of a task.
func standInCgroup(t *testing.T) *process.Cgroup {
	t.Helper()
	parent := t.TempDir()
	cgroup, err := process.MakeCgroup(parent, "token", process.CgroupLimits{})
	must.OK(t, err)
	dirs, err := filepath.Glob(filepath.Join(parent, "*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("folders %v, %v; want one", dirs, err)
	}
	must.Write(t, filepath.Join(dirs[0], "memory.events"), "max 7\noom_kill 2\n")
	must.Write(t, filepath.Join(dirs[0], "pids.events"), "max 5\n")
	return cgroup
}

// TestKilledProgramIsToldAsOutOfMemoryOnlyIfTheKernelCountsIt judges signals with a
// stand-in for the task's cgroup.
func TestKilledProgramIsToldAsOutOfMemoryOnlyIfTheKernelCountsIt(t *testing.T) {
	now, cgroup := process.OOMKills(), standInCgroup(t)
	inCgroup := func() *shim { return &shim{host: &host{}, cgroup: cgroup} }
	for name, tt := range map[string]struct {
		runningStep
		signal syscall.Signal
		want   protocol.Cause
	}{
		"no kill counted":             {runningStep{oomKills: now}, syscall.SIGKILL, protocol.CauseSignal},
		"one of the machine":          {runningStep{oomKills: now - 1}, syscall.SIGKILL, protocol.CauseMemory},
		"one of the machine, crashed": {runningStep{oomKills: now - 1}, syscall.SIGSEGV, protocol.CauseSignal},
		"none in the cgroup":          {runningStep{shim: inCgroup(), oomKills: now, cgroupKills: 2}, syscall.SIGKILL, protocol.CauseSignal},
		"one in the cgroup":           {runningStep{shim: inCgroup(), oomKills: now, cgroupKills: 1}, syscall.SIGKILL, protocol.CauseMemory},
		"one in the cgroup, crashed":  {runningStep{shim: inCgroup(), oomKills: now, cgroupKills: 1, cgroupForks: 5}, syscall.SIGSEGV, protocol.CauseSignal},
		"a fork refused":              {runningStep{shim: inCgroup(), oomKills: now, cgroupForks: 4}, syscall.SIGABRT, protocol.CauseLimit},
		"a fork refused, then killed": {runningStep{shim: inCgroup(), oomKills: now, cgroupForks: 4, cgroupKills: 2}, syscall.SIGKILL, protocol.CauseSignal},
		"file limit":                  {runningStep{shim: &shim{host: &host{}, isolation: Isolation{FileBytes: 1}}, oomKills: now}, syscall.SIGXFSZ, protocol.CauseLimit},
		"no file limit of ours":       {runningStep{oomKills: now}, syscall.SIGXFSZ, protocol.CauseSignal},
	} {
		r := tt.runningStep
		if r.shim == nil {
			r.shim = &shim{host: &host{}}
		}
		r.spec = &Spec{MemoryBytes: 1 << 20}
		r.judgeSignal(tt.signal)
		if r.outcome.Cause != tt.want || r.outcome.Signal == "" {
			t.Errorf("%s: %s, %q; want %s", name, r.outcome.Cause, r.outcome.Message, tt.want)
		}
	}
}

// TestKilledWorkersAreToldAsOutOfMemory: the program waited for the process that was killed,
// and ended with a status of its own.
func TestKilledWorkersAreToldAsOutOfMemory(t *testing.T) {
	now, cgroup := process.OOMKills(), standInCgroup(t)
	for name, tt := range map[string]struct {
		exit        int
		cgroupKills int64
		oomKills    int64
		want        protocol.Cause
	}{
		"none":                           {137, 2, now, protocol.CauseExit},
		"in the cgroup":                  {137, 1, now, protocol.CauseMemory},
		"in the cgroup, with its status": {1, 1, now, protocol.CauseMemory},
		"of the machine":                 {137, 2, now - 1, protocol.CauseMemory},
		"of the machine, another's":      {1, 2, now - 1, protocol.CauseExit},
	} {
		r := runningStep{shim: &shim{host: &host{}, cgroup: cgroup}, cgroupKills: tt.cgroupKills, cgroupForks: 5, oomKills: tt.oomKills}
		r.spec = &Spec{MemoryBytes: 1 << 20}
		r.judge(syscall.WaitStatus(tt.exit << 8))
		if r.outcome.Cause != tt.want || r.outcome.ExitCode != tt.exit {
			t.Errorf("%s: %s, %q; want %s", name, r.outcome.Cause, r.outcome.Message, tt.want)
		}
	}
}

// TestProgramThatCanStartNoProcessIsTold has the kernel refuse a process before the task
// has looked how many there are.
func TestProgramThatCanStartNoProcessIsTold(t *testing.T) {
	cgroup := standInCgroup(t)
	for before, want := range map[int64]protocol.Cause{4: protocol.CauseLimit, 5: protocol.CauseExit} {
		r := runningStep{shim: &shim{cgroup: cgroup, isolation: Isolation{Processes: 100}}, cgroupKills: 2, cgroupForks: before}
		r.spec = &Spec{}
		r.judge(syscall.WaitStatus(2 << 8))
		if r.outcome.Cause != want || r.outcome.ExitCode != 2 {
			t.Errorf("after %d refused before: %s, %q; want %s", before, r.outcome.Cause, r.outcome.Message, want)
		}
	}
}
