// Package local runs tasks as processes of this machine.
//
// Each task is run by its own process, `molrun task DIR` (package task), which outlives
// the service. All state of a task is in its directory, so an Executor finds the tasks of
// the previous one.
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

// Options configures an Executor.
type Options struct {
	Program     string // runs tasks; "" means this executable
	CPUs        int
	MemoryBytes int64
	GPUs        *gpu.Watcher // nil means there are none
	Cores       [][]int      // the CPUs of each core, to which tasks are pinned; empty means not pinned
	Isolation   Isolation    // as returned by Isolate; zero means none
	// SandboxOf returns what a job's algorithm can access in addition to the system
	// folders; nil means nothing.
	SandboxOf func(context.Context, app.JobID) (app.Sandbox, error)
	// ConfinedMemory limits the memory of each process of a confined command; 0 means no
	// limit.
	ConfinedMemory int64
	// StopMargin is how long a task can take to end, in addition to the grace it gives
	// its program, before it is killed; 0 means 15 s.
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

// New returns an Executor, which must be closed.
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

// SetIsolation sets the isolation of tasks. It is for callers that create an Executor
// before they know whether any task will run, and must be called before the first task
// starts.
func (e *Executor) SetIsolation(i Isolation) { e.isolation = i }

// Isolation returns the name of the isolation in effect, as in run.json.
func (e *Executor) Isolation() string { return e.isolation.Kind() }

// Confine makes a command run in a sandbox like that of tasks, if tasks have one, and
// limits the memory of its processes.
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

// CleanUp removes empty cgroups left by tasks of an earlier service, and leftover
// containers of these images whose tasks were below folder.
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

// Close stops the Executor's goroutine. Tasks continue to run.
func (e *Executor) Close() error {
	e.close.Do(e.reaper.stop)
	return nil
}

// Name returns "local".
func (e *Executor) Name() string { return "local" }

// Capacity returns the resources of this machine that tasks are configured to use.
func (e *Executor) Capacity() (app.Capacity, bool) {
	c := e.capacity
	if e.gpus != nil {
		e.gpus.State().AddTo(&c)
	}
	return c, true
}

// GPUsChanged returns a channel that receives after the GPUs of the Capacity have
// changed.
func (e *Executor) GPUsChanged() <-chan struct{} {
	if e.gpus == nil {
		return nil
	}
	return e.gpus.Changed()
}

// HoldGPUs sets which GPUs jobs hold.
func (e *Executor) HoldGPUs(names []string) {
	if e.gpus != nil {
		e.gpus.Hold(names)
	}
}

// CheckGPUs checks the GPUs now.
func (e *Executor) CheckGPUs(ctx context.Context) error {
	if e.gpus == nil {
		return nil
	}
	return e.gpus.Check(ctx)
}

// taskError adds the operation and the task to an error.
func taskError(operation string, t app.Task, err error) error {
	return fmt.Errorf("%s task %s/%d: %w", operation, t.Job, t.Attempt, err)
}

// hasStarted reports whether any file shows that the task was started.
func hasStarted(dir string) bool {
	return task.Exists(dir, task.RunFile) || task.Exists(dir, task.OutcomeFile)
}
