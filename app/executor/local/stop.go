package local

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"time"

	"molrun/app"
	"molrun/app/task"
)

// Stop asks the task to end: by a note, which a task that is only about to
// begin finds, and by a signal. A task that has not ended long after it was
// first asked is killed when it is asked again.
func (e *Executor) Stop(ctx context.Context, t app.Task) error {
	if task.Exists(t.Dir, task.OutcomeFile) {
		return nil
	}
	asked, err := task.AskStop(t.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // without a directory there is no task
	}
	if err != nil {
		return failed("stop", t, err)
	}
	locked, err := task.Locked(t.Dir)
	switch {
	case err != nil:
	case !locked, asked > grace(t.Dir)+e.margin:
		err = e.kill(ctx, t)
	default:
		err = terminate(t)
	}
	if err != nil {
		return failed("stop", t, err)
	}
	return nil
}

// grace gives what the task's program gets to end. Where task.json can't be
// read the task has no program.
func grace(dir string) time.Duration {
	spec, err := task.Read(dir)
	if err != nil {
		return 0
	}
	return spec.Grace()
}

// kill kills all that belongs to the task, its own process included. A task
// from before this start of the machine has left nothing.
func (e *Executor) kill(ctx context.Context, t app.Task) error {
	run, err := readRun(t.Dir)
	if err != nil {
		return err
	}
	if before, err := beforeThisBoot(run, t.Handle); before || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	return e.killAll(ctx, t)
}

// killAll kills what is in the task's cgroup and what carries its mark, and
// waits until that is gone, and the sandbox with whatever was in it: that dies
// with the task's own process, but not at once.
func (e *Executor) killAll(ctx context.Context, t app.Task) error {
	if e.isolation.Cgroup != "" {
		if err := task.KillGroup(ctx, e.isolation.Cgroup, t.Token); err != nil {
			return err
		}
	}
	if err := task.KillMarked(ctx, t.Token); err != nil {
		return err
	}
	return task.AwaitSandboxEnd(ctx, t.Dir)
}

// terminate tells the task's own process, if it has begun and is still there.
func terminate(t app.Task) error {
	run, err := readRun(t.Dir)
	if run == nil || err != nil {
		return err
	}
	if err := run.Signal(syscall.SIGTERM); !errors.Is(err, task.ErrGone) {
		return err
	}
	return nil
}
