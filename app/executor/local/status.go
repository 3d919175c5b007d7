package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/task"
	"molrun/app/task/process"
)

// killTimeout bounds the wait for killed processes to exit.
const killTimeout = 2 * time.Second

// Status reads the tasks' directories. It is for tasks whose Start has returned: a task
// without lock, outcome and process is lost. A task whose directory can't be read counts
// as starting, so that it keeps its resources and the others are still read.
func (e *Executor) Status(ctx context.Context, tasks []app.Task) ([]app.TaskStatus, error) {
	all := make([]app.TaskStatus, 0, len(tasks))
	for _, t := range tasks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := e.status(ctx, t)
		if ctx.Err() != nil {
			return nil, taskError("look at", t, ctx.Err())
		}
		if err != nil {
			s = app.TaskStatus{State: app.TaskStarting, Reason: "could not read the task's files: " + process.SystemCause(err)}
		}
		all = append(all, s)
	}
	return all, nil
}

// status checks the lock first. A task releases it after it has written its outcome, so
// if the lock is free, no outcome will follow.
func (e *Executor) status(ctx context.Context, t app.Task) (app.TaskStatus, error) {
	if t.Worker != "" {
		return e.statusOfRow(ctx, t)
	}
	locked, err := task.Locked(t.Dir)
	if err != nil {
		return app.TaskStatus{}, err
	}
	if locked {
		return running(t.Dir)
	}
	outcome, err := task.ReadOutcome(t.Dir)
	switch {
	case err == nil:
		return app.TaskStatus{State: app.TaskEnded, StartedAt: outcome.StartedAt, Outcome: outcome}, nil
	case errors.Is(err, fs.ErrNotExist):
		return e.lost(ctx, t, "")
	case errors.Is(err, task.ErrUnreadable): // an error would hide the other tasks
		return e.lost(ctx, t, err.Error())
	}
	return app.TaskStatus{}, err
}

// readRun returns nil if the task has not begun, or its run.json is lost.
func readRun(dir string) (*task.Started, error) {
	run, err := task.ReadRun(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, task.ErrUnreadable) {
		return nil, nil
	}
	return run, err
}

// running returns the status of a task whose lock is held.
func running(dir string) (app.TaskStatus, error) {
	run, err := readRun(dir)
	if run == nil || err != nil {
		return app.TaskStatus{State: app.TaskStarting}, err
	}
	s := app.TaskStatus{State: app.TaskRunning, StartedAt: run.StartedAt}
	if p, err := task.ReadProgress(dir); err == nil {
		s.Progress = p // programs are not required to report any
	}
	return s, nil
}

// lost kills the remaining processes of a lost task. While one can't be killed (such as a
// process blocked on a dead disk), the task counts as running, because its resources are
// in use.
func (e *Executor) lost(ctx context.Context, t app.Task, why string) (app.TaskStatus, error) {
	run, err := readRun(t.Dir)
	if err != nil {
		return app.TaskStatus{}, err
	}
	before, err := beforeThisBoot(run, t.Handle)
	if err != nil {
		return app.TaskStatus{}, err
	}
	if why == "" {
		why = reason(t.Dir, run, before)
	}
	if before {
		return app.TaskStatus{State: app.TaskLost, Reason: why}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	if err := e.killAll(ctx, t); err != nil {
		if ctx.Err() == nil {
			return app.TaskStatus{}, err
		}
		return running(t.Dir)
	}
	return app.TaskStatus{State: app.TaskLost, Reason: why}, nil
}

// beforeThisBoot reports whether the task was started before the current boot. Its PIDs
// are then meaningless, so nothing is signaled.
func beforeThisBoot(run *task.Started, h app.Handle) (bool, error) {
	then := ""
	if p, ok := parseHandle(h); ok {
		then = p.BootID
	}
	if run != nil {
		then = run.BootID
	}
	if then == "" {
		return false, nil
	}
	now, err := process.BootID()
	return err == nil && then != now, err
}

func reason(dir string, run *task.Started, before bool) string {
	switch {
	case before:
		return "the machine was restarted"
	case run != nil:
		return "the task's process was killed"
	}
	if line := lastLogLine(dir); line != "" {
		return "the task did not start: " + line
	}
	return "the task did not start"
}

// lastLogLine returns the last line of the error output of the process that runs the
// task.
func lastLogLine(dir string) string {
	f, err := os.Open(filepath.Join(dir, LogFile))
	if err != nil {
		return ""
	}
	defer f.Close()
	const enough = 1 << 10
	if info, err := f.Stat(); err == nil && info.Size() > enough {
		f.Seek(-enough, io.SeekEnd)
	}
	data, err := io.ReadAll(io.LimitReader(f, enough))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.ToValidUTF8(lines[len(lines)-1], "")
}
