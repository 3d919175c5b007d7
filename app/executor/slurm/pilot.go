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

var _ app.Pilots = (*Executor)(nil)

// The process of a pilot is submitted, watched and cancelled like a task: its directory
// stands for the attempt's, and its name is the token. What Slurm knows of a row is what it
// knows of that process; the rest is in the row's files.

// pilotMargin is how much longer than a row its pilot may live: it takes rows for a while.
const pilotMargin = 5 * time.Minute

// processOf returns the process of a row's pilot as a task.
func processOf(t app.Task) app.Task {
	p := app.Task{
		Job: t.Job, Token: filepath.Base(t.Pilot), Dir: t.Pilot, Pilot: t.Pilot, Needs: t.Needs, Placement: t.Placement, Owner: t.Owner,
	}
	if t.Limit > 0 {
		p.Limit = t.Limit + pilotMargin
	}
	return p
}

// isRow reports whether a task runs in a pilot.
func isRow(t app.Task) bool { return t.Pilot != "" && t.Pilot != t.Dir }

// isPilot reports whether a task is the process of a pilot.
func isPilot(t app.Task) bool { return t.Pilot != "" && t.Pilot == t.Dir }

// StartPilot submits the process that runs the rows. A directory is submitted once:
// repeating StartPilot is harmless.
func (e *Executor) StartPilot(ctx context.Context, dir string, t app.Task, rows []string) error {
	t.Pilot = dir
	p := processOf(t)
	if _, submitted, err := e.lists.findToken(p.Token); submitted && err == nil {
		return nil
	}
	err := task.FeedPilot(dir, 1, rows)
	if err == nil {
		_, err = e.submit(ctx, p)
	}
	if err != nil {
		return fmt.Errorf("start the pilot of task %s/%d: %w", t.Job, t.Attempt, err)
	}
	return nil
}

// ShutdownPilot announces to the process that no rows follow. One that waits in Slurm is cancelled.
func (e *Executor) ShutdownPilot(ctx context.Context, dir string) (gone bool, err error) {
	err = task.ClosePilot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if gone, err := e.processGone(dir); gone || err != nil {
		return gone, err
	}
	p := app.Task{Token: filepath.Base(dir), Dir: dir, Pilot: dir}
	all, err := e.Status(ctx, []app.Task{p})
	if err != nil {
		return false, err
	}
	if state := all[0].State; state == app.TaskEnded || state == app.TaskLost {
		return true, nil
	}
	if r, known := e.latest.of(p.Token); known && r.Kind() == kindQueued {
		if _, err := task.RequestStop(dir); err != nil { // else another user would seem to have cancelled it
			return false, err
		}
		return false, e.canceler.requestEnd(ctx, r, cancelIfQueued)
	}
	return false, nil
}

// processGone reports whether a pilot's process has begun and is seen to be gone, which
// Slurm reports it later.
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

// statusOfRow returns the status of a row from that of its pilot's process, which was asked
// for before: if that is over, no file of the row changes any more. A row that was
// interrupted together with its pilot runs until Slurm has said why.
func (e *Executor) statusOfRow(t app.Task, process app.TaskStatus) (s app.TaskStatus, err error) {
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
		return e.rowAlive(t, process, begun, run)
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
	cancelled := end.Cause == app.CauseStopped && !task.StopRequested(t.Pilot)
	switch {
	case begun && (cancelled || end.Cause == app.CauseMemory):
		return ended(rowOfPilot(o, end, lost.StartedAt)), nil
	case !begun && end.Cause == app.CauseCannotStart:
		return app.TaskStatus{State: app.TaskEnded, Outcome: end}, nil
	case !begun && cancelled:
		lost.Outcome = end
	}
	lost.Reason = strings.TrimSuffix(end.Message, ".") // it becomes part of a sentence
	return lost, nil
}

// rowOfPilot returns the outcome of a row that ran in a pilot which was cancelled in Slurm, or
// ran out of memory. It keeps what the row measured, if it had the time.
func rowOfPilot(measured, pilot *app.Outcome, begin time.Time) *app.Outcome {
	o := app.Outcome{Protocol: task.Protocol, StartedAt: begin, EndedAt: pilot.EndedAt}
	if measured != nil {
		o = *measured
	}
	if o.EndedAt.Before(o.StartedAt) {
		o.EndedAt = o.StartedAt
	}
	o.Cause, o.Message = pilot.Cause, pilot.Message
	return &o
}

// rowAlive returns the status of a row whose pilot may run it. A stopped one need not wait
// until the cluster starts the pilot, which would find the file stop.
func (e *Executor) rowAlive(t app.Task, process app.TaskStatus, begun bool, run *task.Started) (app.TaskStatus, error) {
	switch {
	case begun:
		s := app.TaskStatus{State: app.TaskRunning, StartedAt: process.StartedAt}
		if run != nil {
			s.StartedAt = run.StartedAt
		}
		if p, err := task.ReadProgress(t.Dir); err == nil {
			s.Progress = p // programs need not report any
		}
		return s, nil
	case process.State == app.TaskRunning:
		return app.TaskStatus{State: app.TaskStarting, Reason: process.Reason}, nil // it waits in the pilot
	case task.StopRequested(t.Dir):
		if _, starts, err := claimed(t.Pilot); !starts && err == nil {
			return stoppedRow(time.Time{}), nil
		}
	}
	return app.TaskStatus{State: app.TaskStarting, Reason: process.Reason}, nil
}

func stoppedRow(begin time.Time) app.TaskStatus {
	o := &app.Outcome{Protocol: task.Protocol, Cause: app.CauseStopped, Message: "The job was stopped.", StartedAt: begin, EndedAt: begin}
	return app.TaskStatus{State: app.TaskEnded, StartedAt: begin, Outcome: o}
}

// stopRow is Stop for a row. Its pilot looks for the file stop by itself; if the row does
// not end, the pilot has to, and its other rows go to another one.
func (e *Executor) stopRow(ctx context.Context, t app.Task, sinceRequest time.Duration) error {
	if sinceRequest <= e.options.Grace+stopMargin || !task.Exists(t.Dir, task.RunFile) || task.Exists(t.Dir, task.OutcomeFile) {
		return nil
	}
	r, known := e.latest.of(filepath.Base(t.Pilot))
	if !known || r.Kind().Over() {
		return nil
	}
	if _, err := task.RequestStop(t.Pilot); err != nil {
		return err
	}
	return e.canceler.requestEnd(ctx, r, cancelEnd)
}
