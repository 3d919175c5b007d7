package task

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
)

// A process starts although a sweep removes its cgroup again and again, which is empty until
// then: the kernel says so in two ways.
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
			must(t, err)
		} else if err != syscall.ENODEV {
			failed[err]++
		}
	}
	close(done)
	sweeping.Wait()
	if len(failed) > 0 {
		t.Errorf("%d started; these failed in a way that is not tried again: %v", started, failed)
	}
	must(t, s.removeCgroup())
}

// cgroupParent makes a cgroup for those of tasks.
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
