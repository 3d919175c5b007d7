package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"molrun/app"
	"molrun/app/task"
)

// killPatience bounds the wait for what a lost task leaves behind.
const killPatience = 2 * time.Second

// Status reads the tasks' directories. It is for tasks whose Start has
// returned: one without lock, outcome and process is lost. One that can't be
// looked at hides no other: it is as if it had not begun, so that nothing
// follows from it and its resources are not free.
func (e *Executor) Status(ctx context.Context, tasks []app.Task) ([]app.TaskStatus, error) {
	all := make([]app.TaskStatus, 0, len(tasks))
	for _, t := range tasks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := e.status(ctx, t)
		if ctx.Err() != nil {
			return nil, failed("look at", t, ctx.Err())
		}
		if err != nil {
			s = app.TaskStatus{State: app.TaskStarting, Reason: "the server can't look at the task: " + cause(err)}
		}
		all = append(all, s)
	}
	return all, nil
}

// cause gives what the system said, without the paths that are no user's
// business.
func cause(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return err.Error()
}

// status looks at the lock first. A task lets go of it after its outcome is
// there, so a free lock makes the outcome's absence final.
func (e *Executor) status(ctx context.Context, t app.Task) (app.TaskStatus, error) {
	locked, err := task.Locked(t.Dir)
	if err != nil {
		return app.TaskStatus{}, err
	}
	if locked {
		return alive(t.Dir)
	}
	outcome, err := task.ReadOutcome(t.Dir)
	switch {
	case err == nil:
		return app.TaskStatus{State: app.TaskEnded, StartedAt: outcome.StartedAt, Outcome: outcome}, nil
	case errors.Is(err, fs.ErrNotExist):
		return e.lost(ctx, t, "")
	case errors.Is(err, task.ErrUnreadable): // this must not hide the other tasks
		return e.lost(ctx, t, err.Error())
	}
	return app.TaskStatus{}, err
}

// readRun gives nil where the task has not begun, as far as can be told.
func readRun(dir string) (*task.Started, error) {
	run, err := task.ReadRun(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, task.ErrUnreadable) {
		return nil, nil
	}
	return run, err
}

// alive tells of a task whose lock is held.
func alive(dir string) (app.TaskStatus, error) {
	run, err := readRun(dir)
	if run == nil || err != nil {
		return app.TaskStatus{State: app.TaskStarting}, err
	}
	s := app.TaskStatus{State: app.TaskRunning, StartedAt: run.StartedAt}
	if p, err := task.ReadProgress(dir); err == nil {
		s.Progress = p // which may be absent: programs need not tell any
	}
	return s, nil
}

// lost makes sure that nothing of a lost task still runs. What can't be killed
// now (a process that waits for a dead disk) keeps the task running: its
// resources are not free.
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
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	if err := e.killAll(ctx, t); err != nil {
		if ctx.Err() == nil {
			return app.TaskStatus{}, err
		}
		return alive(t.Dir)
	}
	return app.TaskStatus{State: app.TaskLost, Reason: why}, nil
}

// beforeThisBoot reports whether the task belongs to an earlier start of the
// machine. Its numbers mean nothing now, so nothing is signalled.
func beforeThisBoot(run *task.Started, h app.Handle) (bool, error) {
	then := ""
	if p, ok := process(h); ok {
		then = p.BootID
	}
	if run != nil {
		then = run.BootID
	}
	if then == "" {
		return false, nil
	}
	now, err := task.BootID()
	return err == nil && then != now, err
}

func reason(dir string, run *task.Started, before bool) string {
	switch {
	case before:
		return "the machine was restarted"
	case run != nil:
		return "the task's process was killed"
	}
	if words := lastWords(dir); words != "" {
		return "the task did not start: " + words
	}
	return "the task did not start"
}

// lastWords gives the last line that the process that runs the task has
// written about itself.
func lastWords(dir string) string {
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
