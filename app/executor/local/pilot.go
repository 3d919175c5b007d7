package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"molrun/app"
	"molrun/app/task"
	"molrun/app/task/process"
)

var _ app.Pilots = (*Executor)(nil)

// StartPilot starts the process that runs the rows. As for a task, a held lock means a
// living pilot from the first moment. The control files of a pilot that has exited are removed,
// so that only these rows begin.
func (e *Executor) StartPilot(ctx context.Context, dir string, t app.Task, rows []string) error {
	if err := e.startPilot(ctx, dir, t, rows); err != nil {
		return fmt.Errorf("start the pilot of task %s/%d: %w", t.Job, t.Attempt, err)
	}
	return nil
}

func (e *Executor) startPilot(ctx context.Context, dir string, t app.Task, rows []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock, err := task.Lock(dir)
	if errors.Is(err, task.ErrLocked) {
		return nil // it lives, and its rows end in time
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := errors.Join(task.ClearPilot(dir), task.FeedPilot(dir, 1, rows)); err != nil {
		return err
	}
	flags := []string{"--pilot", "--unsynced"}
	if len(rows) > 0 && task.Searches(rows[0]) {
		flags = append(flags, "--gauged")
	}
	pid, err := e.fork(ctx, shim{dir: dir, log: task.PilotLogFile, token: filepath.Base(dir), job: t.Job, flags: flags}, lock)
	if err != nil {
		return errors.Join(err, task.ClearPilot(dir))
	}
	e.reaper.add(pid)
	return nil
}

// ShutdownPilot announces to the process that no rows follow, and checks its lock.
func (e *Executor) ShutdownPilot(_ context.Context, dir string) (gone bool, err error) {
	err = task.ClosePilot(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	locked, err := task.Locked(dir)
	return !locked && err == nil, err
}

// statusOfRow is status for a task in a pilot. Its outcome comes first, because the pilot
// lives on when it has ended.
func (e *Executor) statusOfRow(ctx context.Context, t app.Task) (app.TaskStatus, error) {
	if s, ended, err := endedRow(t.Dir); ended || err != nil {
		return s, err
	}
	locked, err := task.Locked(t.Pilot)
	if err != nil {
		return app.TaskStatus{}, err
	}
	if locked {
		return running(t.Dir)
	}
	if s, ended, err := endedRow(t.Dir); ended || err != nil { // by now
		return s, err
	}
	if !task.Exists(t.Dir, task.RunFile) {
		return app.TaskStatus{State: app.TaskLost, Reason: "the process that was to run it is gone"}, nil
	}
	return e.lost(ctx, t, "")
}

// endedRow returns the status of a task with an outcome. One that was written before the
// machine was restarted, and that nothing made durable, is none: the task's output may be
// incomplete.
func endedRow(dir string) (app.TaskStatus, bool, error) {
	outcome, err := task.ReadOutcome(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, task.ErrUnreadable) {
		return app.TaskStatus{}, false, nil
	}
	if err == nil && outcome.Unsynced != "" {
		var boot string
		if boot, err = process.BootID(); err == nil && boot != outcome.Unsynced {
			return app.TaskStatus{State: app.TaskLost, Reason: "the machine was restarted"}, true, nil
		}
	}
	if err != nil {
		return app.TaskStatus{}, false, err
	}
	return app.TaskStatus{State: app.TaskEnded, StartedAt: outcome.StartedAt, Outcome: outcome}, true, nil
}

// stopRow is Stop for a task in a pilot, which looks for the file stop by itself. Nothing
// but that is the task's alone until it runs.
func (e *Executor) stopRow(ctx context.Context, t app.Task, sinceRequest time.Duration) error {
	locked, err := task.Locked(t.Pilot)
	if err != nil || locked && sinceRequest <= grace(t.Dir)+e.stopMargin || !task.Exists(t.Dir, task.RunFile) {
		return err
	}
	return e.kill(ctx, t)
}

// shim is a process to be started for a task or a pilot.
type shim struct {
	dir   string
	log   string // file in dir for its error output
	token string
	job   app.JobID
	flags []string
}
