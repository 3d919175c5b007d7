// Package local runs tasks as processes of this machine.
//
// Each task is run by a process of its own, `molrun task DIR` (package task),
// which outlives the service: all that is known of a task lies in its
// directory, so an Executor finds the tasks of the one before it.
package local

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"molrun/app"
	"molrun/app/task"
)

// Options say how an Executor runs tasks.
type Options struct {
	Program     string // this program's path
	CPUs        int
	MemoryBytes int64
	GPUs        []string
	Isolation   Isolation // as Isolate gave it; zero: none
	// SandboxOf gives what a job's algorithm may reach; nil: nothing more than
	// any.
	SandboxOf func(context.Context, app.JobID) (app.Sandbox, error)
	// StopMargin is what a task gets to end beyond the grace that it gives its
	// program, before it is killed itself; 0 is 15 s.
	StopMargin time.Duration
}

const defaultStopMargin = 15 * time.Second

// Executor runs tasks on this machine.
type Executor struct {
	program   string
	capacity  app.Capacity
	isolation Isolation
	sandboxOf func(context.Context, app.JobID) (app.Sandbox, error)
	margin    time.Duration
	reaper    *reaper
	close     sync.Once
}

var _ app.Executor = (*Executor)(nil)

// New gives an Executor. It has to be closed.
func New(o Options) *Executor {
	if o.StopMargin <= 0 {
		o.StopMargin = defaultStopMargin
	}
	if o.SandboxOf == nil {
		o.SandboxOf = func(context.Context, app.JobID) (app.Sandbox, error) { return app.Sandbox{}, nil }
	}
	return &Executor{
		program:   o.Program,
		capacity:  app.Capacity{CPUs: o.CPUs, MemoryBytes: o.MemoryBytes, GPUs: o.GPUs},
		isolation: o.Isolation,
		sandboxOf: o.SandboxOf,
		margin:    o.StopMargin,
		reaper:    newReaper(),
	}
}

// Use makes tasks run in this isolation. It is for whoever opens an executor
// before it is known whether any task will run, and called before the first one
// does.
func (e *Executor) Use(i Isolation) { e.isolation = i }

// Isolation names the isolation in force, as run.json does.
func (e *Executor) Isolation() string { return e.isolation.Kind() }

// Confine makes a command run in a sandbox such as tasks have, if they have one.
func (e *Executor) Confine(c *exec.Cmd, s app.Sandbox, files []string) (done func(), err error) {
	i := e.isolation.Isolation
	i.Sandbox = s
	return i.Confine(c, files)
}

// Sweep removes the empty cgroups that tasks of an earlier service have left.
func (e *Executor) Sweep() error {
	if e.isolation.Cgroup == "" {
		return nil
	}
	return task.SweepGroups(e.isolation.Cgroup)
}

// Close ends what the Executor does by itself. Tasks run on.
func (e *Executor) Close() error {
	e.close.Do(e.reaper.stop)
	return nil
}

// Name is local.
func (e *Executor) Name() string { return "local" }

// Capacity gives what the configuration allows tasks to use of this machine.
func (e *Executor) Capacity() (app.Capacity, bool) { return e.capacity, true }

// failed names the task in an error.
func failed(what string, t app.Task, err error) error {
	return fmt.Errorf("%s task %s/%d: %w", what, t.Job, t.Attempt, err)
}

// started reports whether anything says that the task was once started.
func started(dir string) bool {
	return task.Exists(dir, task.RunFile) || task.Exists(dir, task.OutcomeFile)
}
