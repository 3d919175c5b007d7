package local

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"time"

	"molrun/app"
	"molrun/app/task"
	"molrun/app/task/process"
)

// Stop requests the end of the task: by the file stop, for a task that has not begun yet,
// and by a signal. If the task has not ended long after the first request, repeating Stop
// kills it.
func (e *Executor) Stop(ctx context.Context, t app.Task) error {
	if task.Exists(t.Dir, task.OutcomeFile) {
		return nil
	}
	sinceRequest, err := task.RequestStop(t.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no directory, no task
	}
	if err != nil {
		return taskError("stop", t, err)
	}
	if t.Worker != "" {
		if err := e.stopRow(ctx, t, sinceRequest); err != nil {
			return taskError("stop", t, err)
		}
		return nil
	}
	locked, err := task.Locked(t.Dir)
	switch {
	case err != nil:
	case !locked, sinceRequest > grace(t.Dir)+e.stopMargin:
		err = e.kill(ctx, t)
	default:
		err = terminate(t)
	}
	if err != nil {
		return taskError("stop", t, err)
	}
	return nil
}

// grace returns how long the task's program has to end. If task.json can't be read, the
// task has no program.
func grace(dir string) time.Duration {
	spec, err := task.ReadSpec(dir)
	if err != nil {
		return 0
	}
	return spec.Grace()
}

// kill kills every process of the task, including its runner process. A task started
// before this boot has none left.
func (e *Executor) kill(ctx context.Context, t app.Task) error {
	run, err := readRun(t.Dir)
	if err != nil {
		return err
	}
	if before, err := beforeThisBoot(run, t.Handle); before || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	return e.killAll(ctx, t)
}

// killAll kills the processes in the task's cgroup or with its mark, and waits until they
// have exited. It also waits for the sandbox, which ends with the task's runner process,
// but not immediately.
func (e *Executor) killAll(ctx context.Context, t app.Task) error {
	if e.isolation.Cgroup != "" {
		if err := process.KillCgroup(ctx, e.isolation.Cgroup, t.Token); err != nil {
			return err
		}
	}
	if err := process.KillMarked(ctx, t.Token); err != nil {
		return err
	}
	return task.AwaitSandboxEnd(ctx, t.Dir)
}

// terminate signals the task's runner process, if it has begun and still exists.
func terminate(t app.Task) error {
	run, err := readRun(t.Dir)
	if run == nil || err != nil {
		return err
	}
	if err := run.Signal(syscall.SIGTERM); !errors.Is(err, process.ErrGone) {
		return err
	}
	return nil
}
