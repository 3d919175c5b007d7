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

var _ app.Workers = (*Executor)(nil)

// StartWorker starts the process that runs the jobs. As for a task, a held lock means a
// live worker from the first moment. The control files of a worker that has exited are
// removed, so that only these jobs begin.
func (e *Executor) StartWorker(ctx context.Context, dir string, t app.Task, rows []string) error {
	if err := e.startWorker(ctx, dir, t, rows); err != nil {
		return fmt.Errorf("start the worker of task %s/%d: %w", t.Job, t.Attempt, err)
	}
	return nil
}

func (e *Executor) startWorker(ctx context.Context, dir string, t app.Task, rows []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock, err := task.Lock(dir)
	if errors.Is(err, task.ErrLocked) {
		return nil // it is alive and will end its jobs
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := errors.Join(task.ClearWorker(dir), task.AssignTasks(dir, 1, rows)); err != nil {
		return err
	}
	flags := []string{"--worker", "--unsynced"}
	if len(rows) > 0 && task.NeedsProgressParser(rows[0]) {
		flags = append(flags, "--gauged")
	}
	pid, err := e.fork(ctx, shim{dir: dir, log: task.WorkerLogFile, token: filepath.Base(dir), job: t.Job, flags: flags}, lock)
	if err != nil {
		return errors.Join(err, task.ClearWorker(dir))
	}
	e.reaper.add(pid)
	return nil
}

// ShutdownWorker notifies the process that no more jobs follow, and checks its lock.
func (e *Executor) ShutdownWorker(_ context.Context, dir string) (gone bool, err error) {
	err = task.CloseWorker(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	locked, err := task.Locked(dir)
	return !locked && err == nil, err
}

// statusOfRow is status for a task in a worker. It checks the outcome first, because the
// worker outlives the task.
func (e *Executor) statusOfRow(ctx context.Context, t app.Task) (app.TaskStatus, error) {
	if s, ended, err := endedRow(t.Dir); ended || err != nil {
		return s, err
	}
	locked, err := task.Locked(t.Worker)
	if err != nil {
		return app.TaskStatus{}, err
	}
	if locked {
		return running(t.Dir)
	}
	if s, ended, err := endedRow(t.Dir); ended || err != nil { // it may have ended since the first check
		return s, err
	}
	if !task.Exists(t.Dir, task.RunFile) {
		return app.TaskStatus{State: app.TaskLost, Reason: "its worker process has exited"}, nil
	}
	return e.lost(ctx, t, "")
}

// endedRow returns the status of a task with an outcome. An outcome written before a
// reboot and not made durable does not count: the task's output may be incomplete.
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

// stopRow is Stop for a task in a worker, which checks for the file stop itself. Before
// the task runs, there is no process to kill that belongs to it alone.
func (e *Executor) stopRow(ctx context.Context, t app.Task, sinceRequest time.Duration) error {
	locked, err := task.Locked(t.Worker)
	if err != nil || locked && sinceRequest <= grace(t.Dir)+e.stopMargin || !task.Exists(t.Dir, task.RunFile) {
		return err
	}
	return e.kill(ctx, t)
}

// shim is a process to start for a task or a worker.
type shim struct {
	dir   string
	log   string // file in dir for its error output
	token string
	job   app.JobID
	flags []string
}
