package slurm

import (
	"sync/atomic"

	"molrun/app/task"
	"molrun/app/task/process"
)

// locks knows whether this machine sees a lock that a task holds on a node. Some
// shared file systems keep locks local to each machine (Lustre with localflock,
// some mounts of NFS); there a running task looks as if it did not run.
type locks struct{ shared atomic.Bool }

// learn looks at a running task, which may be on another machine. After the first
// lock seen from elsewhere it costs nothing.
func (l *locks) learn(dir string, run *task.Started) {
	if l.shared.Load() || here(run) {
		return
	}
	if locked, err := task.Locked(dir); err == nil && locked {
		l.shared.Store(true)
	}
}

// reliable reports whether a task without a lock has no process.
func (l *locks) reliable(run *task.Started) bool { return l.shared.Load() || here(run) }

// here reports whether a task runs, or ran, on this machine since its last boot.
func here(run *task.Started) bool {
	boot, err := process.BootID()
	return err == nil && run.BootID == boot
}
