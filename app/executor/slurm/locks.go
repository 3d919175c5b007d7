package slurm

import (
	"sync/atomic"

	"molrun/app/task"
	"molrun/app/task/process"
)

// locks records whether this machine sees a lock that a task holds on a node. Some shared
// file systems keep locks local to each machine (Lustre with localflock, some NFS
// mounts), so that a running task seems not to run.
type locks struct{ shared atomic.Bool }

// learn checks the lock of a running task, which may be on another machine. Once a lock
// of another machine has been seen, it costs nothing.
func (l *locks) learn(dir string, run *task.Started) {
	if l.shared.Load() || here(run) {
		return
	}
	if locked, err := task.Locked(dir); err == nil && locked {
		l.shared.Store(true)
	}
}

// reliable reports whether a missing lock proves that the task has no process.
func (l *locks) reliable(run *task.Started) bool { return l.shared.Load() || here(run) }

// here reports whether a task runs, or ran since the last boot, on this machine.
func here(run *task.Started) bool {
	boot, err := process.BootID()
	return err == nil && run.BootID == boot
}
