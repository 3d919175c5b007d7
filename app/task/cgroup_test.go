package task

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"molrun/app/test/must"
)

// A process starts although cleanup repeatedly removes its cgroup while it is still
// empty; the kernel reports this in two ways.
func TestProcessesStartWhileTheirCgroupIsSwept(t *testing.T) {
	parent := cgroupParent(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := &shim{host: &host{}, isolation: Isolation{Cgroup: parent}, spec: &Spec{Token: "T"}}
	done := make(chan struct{})
	var sweeping sync.WaitGroup
	sweeping.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				syscall.Rmdir(filepath.Join(parent, "molrun-task-T"))
			}
		}
	})
	started, failed := 0, map[error]int{}
	for range 400 {
		pid, err := s.forkExecInCgroup("/bin/true", []string{"true"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{}})
		if err == nil {
			started++
			_, err = syscall.Wait4(pid, nil, 0, nil)
			must.OK(t, err)
		} else if err != syscall.ENODEV {
			failed[err]++
		}
	}
	close(done)
	sweeping.Wait()
	if len(failed) > 0 {
		t.Errorf("%d started; these failed with errors that are not retried: %v", started, failed)
	}
	must.OK(t, s.removeCgroup())
}

// Jobs of a batch share a sandbox although cleanup removes the first cgroup of each while
// it is empty.
func TestSandboxIsSharedWhileCgroupsAreSwept(t *testing.T) {
	f := sharedFlight(t)
	f.isolation.Cgroup = cgroupParent(t)
	stop, swept := make(chan struct{}), map[string]bool{}
	var sweeping sync.WaitGroup
	sweeping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			found, err := filepath.Glob(filepath.Join(f.isolation.Cgroup, "molrun-task-*"))
			must.OK(t, err)
			for _, dir := range found {
				if !swept[dir] && syscall.Rmdir(dir) == nil {
					swept[dir] = true
				}
			}
		}
	})
	var rows []*attempt
	for range 30 {
		rows = append(rows, row(t, "true"))
	}
	f.feed(rows...)
	f.start()
	f.finish()
	close(stop)
	sweeping.Wait()
	if len(swept) < 10 {
		t.Fatalf("only %d cgroups were cleaned up", len(swept))
	}
	done(t, rows...)
	for _, a := range rows[:len(rows)-1] { // the last has no successor
		if firstOf(t, a) != firstOf(t, rows[0]) {
			t.Errorf("%s was not in the sandbox of the others", a.dir)
		}
	}
	must.Equal(t, "the worker", f.read(WorkerLogFile), "")
}

// cgroupParent makes a parent for the cgroups of tasks.
func cgroupParent(t *testing.T) string {
	t.Helper()
	for _, root := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		dir, err := os.MkdirTemp(root, "molrun-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { syscall.Rmdir(dir) })
		if _, err := os.Stat(filepath.Join(dir, "cgroup.kill")); err == nil {
			return dir
		}
	}
	t.Skip("no cgroup can be made here")
	return ""
}
