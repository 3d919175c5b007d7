// Package local runs tasks as processes of this machine.
//
// Each task is run by a process of its own, `molrun task DIR` (package task),
// which outlives the service. All that is known of a task is in its directory,
// so an Executor finds the tasks of the one before it.
package local

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"molrun/app"
	"molrun/app/executor/local/gpu"
	"molrun/app/task"
	"molrun/app/task/container"
	"molrun/app/task/process"
	"molrun/app/task/sandbox"
)

// Options say how an Executor runs tasks.
type Options struct {
	Program     string // that runs tasks; "" is this one
	CPUs        int
	MemoryBytes int64
	GPUs        *gpu.Watcher // nil: there are none
	Cores       [][]int      // the CPUs of each core, to which tasks are pinned; none: they are not
	Isolation   Isolation    // as Isolate gave it; zero: none
	// SandboxOf gives what a job's algorithm may reach beyond the system's own
	// folders; nil: nothing.
	SandboxOf func(context.Context, app.JobID) (app.Sandbox, error)
	// ConfinedMemory is what each process of a confined command may use; 0: no limit.
	ConfinedMemory int64
	// StopMargin is how long a task may take to end, beyond the grace that it
	// gives its program, before it is killed; 0 is 15 s.
	StopMargin time.Duration
}

const defaultStopMargin = 15 * time.Second

// Executor runs tasks on this machine.
type Executor struct {
	program        string
	capacity       app.Capacity // without GPUs
	gpus           *gpu.Watcher
	isolation      Isolation
	sandboxOf      func(context.Context, app.JobID) (app.Sandbox, error)
	stopMargin     time.Duration
	confinedMemory int64
	reaper         *reaper
	close          sync.Once
}

var (
	_ app.Executor   = (*Executor)(nil)
	_ app.GPUWatcher = (*Executor)(nil)
)

// New makes an Executor. It must be closed.
func New(o Options) *Executor {
	if o.StopMargin <= 0 {
		o.StopMargin = defaultStopMargin
	}
	if o.Program == "" {
		o.Program = process.Self
	}
	if o.SandboxOf == nil {
		o.SandboxOf = func(context.Context, app.JobID) (app.Sandbox, error) { return app.Sandbox{}, nil }
	}
	return &Executor{
		program:        o.Program,
		capacity:       app.Capacity{CPUs: o.CPUs, MemoryBytes: o.MemoryBytes, Cores: o.Cores},
		gpus:           o.GPUs,
		sandboxOf:      o.SandboxOf,
		stopMargin:     o.StopMargin,
		confinedMemory: o.ConfinedMemory,
		isolation:      o.Isolation,
		reaper:         newReaper(),
	}
}

// SetIsolation sets the isolation of tasks. It is for callers that make an Executor
// before they know whether any task will run, and must be called before the
// first task starts.
func (e *Executor) SetIsolation(i Isolation) { e.isolation = i }

// Isolation names the isolation in force, as run.json does.
func (e *Executor) Isolation() string { return e.isolation.Kind() }

// Confine makes a command run in a sandbox like that of tasks, if they have one,
// and limits the memory of its processes.
func (e *Executor) Confine(c *exec.Cmd, s app.Sandbox, files []string) (done func(), err error) {
	if i := e.isolation; i.Bubblewrap != "" {
		return sandbox.Confine(c, sandbox.Confinement{
			Bubblewrap: i.Bubblewrap, Sized: i.Sized, Allowed: s, Files: files, Hide: i.Hide, MemoryBytes: e.confinedMemory,
		})
	}
	if c.Err == nil {
		c.Args = process.WithMemoryLimit(append([]string{c.Path}, c.Args[1:]...), e.confinedMemory)
		c.Path = c.Args[0]
	}
	return func() {}, nil
}

// CleanUp removes the empty cgroups that tasks of an earlier service have left, and their
// containers of these images below a folder.
func (e *Executor) CleanUp(ctx context.Context, folder string, images func() []string) error {
	var err error
	if e.isolation.Cgroup != "" {
		err = process.RemoveEmptyCgroups(e.isolation.Cgroup)
	}
	over := func(dir string) bool {
		locked, err := task.Locked(dir)
		return !locked && err == nil
	}
	if !e.isolation.Containers.Any() {
		return err
	}
	swept := map[container.Kind]bool{}
	for _, image := range images() {
		runtime, missing := e.isolation.Containers.FindRuntime(image)
		if missing != nil || swept[runtime.Kind] {
			continue
		}
		swept[runtime.Kind] = true
		err = errors.Join(err, runtime.CleanUp(ctx, folder, over))
	}
	return err
}

// Close stops the Executor's own goroutine. Tasks run on.
func (e *Executor) Close() error {
	e.close.Do(e.reaper.stop)
	return nil
}

// Name is local.
func (e *Executor) Name() string { return "local" }

// Capacity returns what the configuration allows tasks to use of this machine.
func (e *Executor) Capacity() (app.Capacity, bool) {
	c := e.capacity
	if e.gpus != nil {
		e.gpus.State().AddTo(&c)
	}
	return c, true
}

// GPUsChanged receives after the GPUs of the Capacity have changed.
func (e *Executor) GPUsChanged() <-chan struct{} {
	if e.gpus == nil {
		return nil
	}
	return e.gpus.Changed()
}

// HoldGPUs says which GPUs jobs have.
func (e *Executor) HoldGPUs(names []string) {
	if e.gpus != nil {
		e.gpus.Hold(names)
	}
}

// CheckGPUs looks at the GPUs now.
func (e *Executor) CheckGPUs(ctx context.Context) error {
	if e.gpus == nil {
		return nil
	}
	return e.gpus.Check(ctx)
}

// taskError names the task in an error.
func taskError(operation string, t app.Task, err error) error {
	return fmt.Errorf("%s task %s/%d: %w", operation, t.Job, t.Attempt, err)
}

// hasStarted reports whether any file says that the task was started.
func hasStarted(dir string) bool {
	return task.Exists(dir, task.RunFile) || task.Exists(dir, task.OutcomeFile)
}
