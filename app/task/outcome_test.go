package task

import (
	"path/filepath"
	"syscall"
	"testing"

	"molrun/app/task/process"
	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

// standInCgroup makes a folder with control files that acts as the cgroup of a task.
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

// TestKilledProgramIsToldAsOutOfMemoryOnlyIfTheKernelCountsIt classifies signals with a
// fake cgroup.
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
		r.classifySignal(tt.signal)
		if r.outcome.Cause != tt.want || r.outcome.Signal == "" {
			t.Errorf("%s: %s, %q; want %s", name, r.outcome.Cause, r.outcome.Message, tt.want)
		}
	}
}

// TestOOMKillOfChildIsReported has the kernel count an OOM kill while the program
// itself exits with its own status.
func TestOOMKillOfChildIsReported(t *testing.T) {
	now, cgroup := process.OOMKills(), standInCgroup(t)
	for name, tt := range map[string]struct {
		status, kills, machine int64
		makes                  []string
		want                   protocol.Cause
		over                   bool
	}{
		"killed by somebody":            {137, 2, now, nil, protocol.CauseExit, false},
		"killed by the kernel":          {137, 1, now, nil, protocol.CauseMemory, false},
		"killed, and one elsewhere":     {137, 2, now - 1, nil, protocol.CauseMemory, false},
		"failed, and one killed":        {1, 1, now, nil, protocol.CauseMemory, false},
		"failed, and one elsewhere":     {1, 2, now - 1, nil, protocol.CauseExit, false},
		"ended well, without a file":    {0, 1, now, []string{"gone"}, protocol.CauseMemory, false},
		"no kill, without a file":       {0, 2, now, []string{"gone"}, protocol.CauseNoResult, false},
		"ended well, with its files":    {0, 1, now, []string{"there"}, protocol.CauseDone, true},
		"ended well, nothing to check":  {0, 1, now, nil, protocol.CauseDone, true},
		"ended well, and one elsewhere": {0, 2, now - 1, nil, protocol.CauseDone, false},
	} {
		work := t.TempDir()
		must.Write(t, filepath.Join(work, "there"), "x")
		r := runningStep{shim: &shim{host: &host{}, cgroup: cgroup, work: work, spec: &Spec{}}, cgroupKills: tt.kills, cgroupForks: 5, oomKills: tt.machine, last: true}
		r.step.Makes = tt.makes
		r.classifyEnd(syscall.WaitStatus(tt.status << 8))
		r.conclude()
		if o := r.outcome; o.Cause != tt.want || o.OverMemory != tt.over || (len(o.Warnings) > 0) != tt.over {
			t.Errorf("%s: %+v, want %s", name, o, tt.want)
		}
	}
}

// TestProgramThatCanStartNoProcessIsTold has the kernel reject a fork before the task has
// counted its processes.
func TestProgramThatCanStartNoProcessIsTold(t *testing.T) {
	cgroup := standInCgroup(t)
	for before, want := range map[int64]protocol.Cause{4: protocol.CauseLimit, 5: protocol.CauseExit} {
		r := runningStep{shim: &shim{cgroup: cgroup, isolation: Isolation{Processes: 100}}, cgroupForks: before, cgroupKills: 2}
		r.spec = &Spec{}
		r.classifyEnd(syscall.WaitStatus(2 << 8))
		if r.outcome.Cause != want || r.outcome.ExitCode != 2 {
			t.Errorf("after %d refused before: %s, %q; want %s", before, r.outcome.Cause, r.outcome.Message, want)
		}
	}
}
