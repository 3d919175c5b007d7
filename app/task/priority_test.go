package task

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"molrun/app/test/must"
)

// hurried reports whether a thread of a process has real-time priority.
func hurried(t *testing.T, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	must.OK(t, err)
	for _, name := range threads {
		text, err := os.ReadFile(name)
		if os.IsNotExist(err) || err == syscall.ESRCH {
			continue // it has exited
		}
		must.OK(t, err)
		_, rest, _ := strings.Cut(string(text), ") ")
		policy, err := strconv.Atoi(strings.Fields(rest)[38])
		must.OK(t, err)
		if policy != 0 {
			return true
		}
	}
	return false
}

// untilHurried waits until hurried returns want.
func untilHurried(t *testing.T, pid int, want bool) {
	t.Helper()
	must.Become(t, fmt.Sprintf("priority over others is %v", want), func() bool { return hurried(t, pid) == want })
}

// A task preempts others only while it has to kill processes, or while they multiply.
func TestPriorityIsRaisedOnlyToKill(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can set priorities")
	}
	const obstinate = `trap "" TERM; echo > out/ready; while [ ! -e out/go ]; do sleep 0.05; done`
	f := newFlight(t)
	first, second := row(t, obstinate), row(t, "echo > out/ready; while [ ! -e out/go ]; do sleep 0.05; done")
	f.feed(first, second)
	f.start()
	first.untilFile(WorkDir, "out", "ready")
	if hurried(t, f.cmd.Process.Pid) {
		t.Error("it has priority although there is nothing to kill")
	}
	_, err := RequestStop(first.dir)
	must.OK(t, err)
	untilHurried(t, f.cmd.Process.Pid, true)
	must.OK(t, os.WriteFile(first.path(WorkDir, "out", "go"), nil, 0o600))
	second.untilFile(WorkDir, "out", "ready")
	if hurried(t, f.cmd.Process.Pid) {
		t.Error("it still has priority in the next task")
	}
	must.OK(t, os.WriteFile(second.path(WorkDir, "out", "go"), nil, 0o600))
	f.finish()
}

func TestManyProcessesAreWatchedFirst(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can set priorities")
	}
	a := newAttempt(t, fmt.Sprintf("i=0; while [ $i -lt %d ]; do sleep 1000 & i=$((i+1)); done; echo > out/ready; while [ ! -e out/go ]; do sleep 0.05; done", forkBombThreshold+1))
	a.spec.GraceSeconds = 1
	r := a.start()
	untilHurried(t, r.cmd.Process.Pid, true)
	must.OK(t, os.WriteFile(a.path(WorkDir, "out", "go"), nil, 0o600))
	r.outcome()
}
