package slurm

import (
	"sync/atomic"

	"molrun/app/task"
	"molrun/app/task/process"
)

// locks knows whether a lock that a task holds on a node is seen here. Some
// shared file systems keep locks to each machine (Lustre with localflock, some
// mounts of NFS); there a task that runs looks as if it did not.
type locks struct{ shared atomic.Bool }

// look learns from a task that runs and may be on another machine. Once learned
// it costs nothing.
func (l *locks) look(dir string, run *task.Started) {
	if l.shared.Load() || here(run) {
		return
	}
	if locked, err := task.Locked(dir); err == nil && locked {
		l.shared.Store(true)
	}
}

// tell reports whether a task without a lock has no process.
func (l *locks) tell(run *task.Started) bool { return l.shared.Load() || here(run) }

// here reports whether a task runs, or ran, on this machine as it is up now.
func here(run *task.Started) bool {
	boot, err := process.BootID()
	return err == nil && run.BootID == boot
}
