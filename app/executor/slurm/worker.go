package slurm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/task"
)

var _ app.Workers = (*Executor)(nil)

// The process of a worker is submitted, watched and canceled like a task: its directory
// replaces the attempt's, and its name is the token. For a job in a worker, Slurm provides
// only the state of that process; the rest is in the job's files.

// workerMargin is added to a job's time limit for its worker, which runs several jobs.
const workerMargin = 5 * time.Minute

// processOf returns the worker process of a job as a task.
func processOf(t app.Task) app.Task {
	p := app.Task{
		Job: t.Job, Token: filepath.Base(t.Worker), Dir: t.Worker, Worker: t.Worker, Needs: t.Needs, Placement: t.Placement, Owner: t.Owner,
	}
	if t.Limit > 0 {
		p.Limit = t.Limit + workerMargin
	}
	return p
}

// runsInWorker reports whether a task runs in a worker.
func runsInWorker(t app.Task) bool { return t.Worker != "" && t.Worker != t.Dir }

// isWorker reports whether a task is the process of a worker.
func isWorker(t app.Task) bool { return t.Worker != "" && t.Worker == t.Dir }

// StartWorker submits the process that runs the jobs. A directory is submitted only once,
// so StartWorker can be repeated.
func (e *Executor) StartWorker(ctx context.Context, dir string, t app.Task, rows []string) error {
	t.Worker = dir
	p := processOf(t)
	if _, submitted, err := e.lists.findToken(p.Token); submitted && err == nil {
		return nil
	}
	err := task.AssignTasks(dir, 1, rows)
	if err == nil {
		_, err = e.submit(ctx, p)
	}
	if err != nil {
		return fmt.Errorf("start the worker of task %s/%d: %w", t.Job, t.Attempt, err)
	}
	return nil
}

// ShutdownWorker notifies the process that no more jobs follow. A process still queued in
// Slurm is canceled.
func (e *Executor) ShutdownWorker(ctx context.Context, dir string) (gone bool, err error) {
	err = task.CloseWorker(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if gone, err := e.processGone(dir); gone || err != nil {
		return gone, err
	}
	p := app.Task{Token: filepath.Base(dir), Dir: dir, Worker: dir}
	all, err := e.Status(ctx, []app.Task{p})
	if err != nil {
		return false, err
	}
	if state := all[0].State; state == app.TaskEnded || state == app.TaskLost {
		return true, nil
	}
	if r, known := e.latest.of(p.Token); known && r.Kind() == kindQueued {
		if _, err := task.RequestStop(dir); err != nil { // otherwise another user would seem to have canceled it
			return false, err
		}
		return false, e.canceler.requestEnd(ctx, r, cancelIfQueued)
	}
	return false, nil
}

// processGone reports whether a worker's process has begun and is known to have exited,
// which Slurm reports only later.
func (e *Executor) processGone(dir string) (bool, error) {
	run, err := task.ReadRun(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, task.ErrUnreadable) {
		return false, nil
	}
	if err != nil || !e.locks.reliable(run) {
		return false, err
	}
	locked, err := task.Locked(dir)
	return err == nil && !locked, err
}

// statusInWorker returns the status of a job in a worker from that of the worker's process,
// which must be queried first: once the process is over, the job's files no longer
// change. A job interrupted together with its worker counts as running until Slurm has
// reported why.
func (e *Executor) statusInWorker(t app.Task, process app.TaskStatus) (s app.TaskStatus, err error) {
	defer func() { s.Cluster = process.Cluster }()
	task.Refresh(t.Dir)
	o, err := readOutcome(t.Dir)
	if o != nil && o.Cause != app.CauseInterrupted || err != nil {
		return ended(o), err
	}
	run, err := task.ReadRun(t.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, task.ErrUnreadable) {
		return app.TaskStatus{}, err
	}
	begun := !errors.Is(err, fs.ErrNotExist)
	if process.State == app.TaskStarting || process.State == app.TaskRunning {
		return e.aliveInWorker(t, process, begun, run)
	}
	lost := app.TaskStatus{State: app.TaskLost, Reason: process.Reason}
	if run != nil {
		lost.StartedAt = run.StartedAt
	}
	if begun && task.StopRequested(t.Dir) {
		return stoppedRow(lost.StartedAt), nil
	}
	end := process.Outcome
	if end == nil {
		return lost, nil
	}
	cancelled := end.Cause == app.CauseStopped && !task.StopRequested(t.Worker)
	switch {
	case begun && (cancelled || end.Cause == app.CauseMemory):
		return ended(outcomeInWorker(o, end, lost.StartedAt)), nil
	case !begun && end.Cause == app.CauseCannotStart:
		return app.TaskStatus{State: app.TaskEnded, Outcome: end}, nil
	case !begun && cancelled:
		lost.Outcome = end
	}
	lost.Reason = strings.TrimSuffix(end.Message, ".") // it becomes part of a sentence
	return lost, nil
}

// outcomeInWorker returns the outcome of a job whose worker was canceled in Slurm or ran out of
// memory. It keeps the job's measurements, if there are any.
func outcomeInWorker(measured, worker *app.Outcome, begin time.Time) *app.Outcome {
	o := app.Outcome{Protocol: task.Protocol, StartedAt: begin, EndedAt: worker.EndedAt}
	if measured != nil {
		o = *measured
	}
	if o.EndedAt.Before(o.StartedAt) {
		o.EndedAt = o.StartedAt
	}
	o.Cause, o.Message = worker.Cause, worker.Message
	return &o
}

// aliveInWorker returns the status of a job whose worker may run it. A stopped job need not
// wait until the cluster starts the worker, which would find the file stop.
func (e *Executor) aliveInWorker(t app.Task, process app.TaskStatus, begun bool, run *task.Started) (app.TaskStatus, error) {
	switch {
	case begun:
		s := app.TaskStatus{State: app.TaskRunning, StartedAt: process.StartedAt}
		if run != nil {
			s.StartedAt = run.StartedAt
		}
		if p, err := task.ReadProgress(t.Dir); err == nil {
			s.Progress = p // programs are not required to report any
		}
		return s, nil
	case process.State == app.TaskRunning:
		return app.TaskStatus{State: app.TaskStarting, Reason: process.Reason}, nil // it waits in the worker
	case task.StopRequested(t.Dir):
		if _, starts, err := claimed(t.Worker); !starts && err == nil {
			return stoppedRow(time.Time{}), nil
		}
	}
	return app.TaskStatus{State: app.TaskStarting, Reason: process.Reason}, nil
}

func stoppedRow(begin time.Time) app.TaskStatus {
	o := &app.Outcome{Protocol: task.Protocol, Cause: app.CauseStopped, Message: "The job was stopped.", StartedAt: begin, EndedAt: begin}
	return app.TaskStatus{State: app.TaskEnded, StartedAt: begin, Outcome: o}
}

// stopRow is Stop for a job in a worker. The worker checks for the file stop; if the job
// does not end, the worker is ended, and its other jobs go to a new one.
func (e *Executor) stopRow(ctx context.Context, t app.Task, sinceRequest time.Duration) error {
	if sinceRequest <= e.options.Grace+stopMargin || !task.Exists(t.Dir, task.RunFile) || task.Exists(t.Dir, task.OutcomeFile) {
		return nil
	}
	r, known := e.latest.of(filepath.Base(t.Worker))
	if !known || r.Kind().Over() {
		return nil
	}
	if _, err := task.RequestStop(t.Worker); err != nil {
		return err
	}
	return e.canceler.requestEnd(ctx, r, cancelEnd)
}
