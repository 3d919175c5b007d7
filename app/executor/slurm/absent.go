package slurm

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"molrun/app"
	"molrun/app/task"
)

const (
	// lostRounds is how many rounds a task must be unknown to Slurm before any conclusion
	// is drawn.
	lostRounds = 3
	// againAfter is how long a task must be unknown before it is submitted again. If the
	// first submission appears even later, the claim prevents it from running.
	againAfter = 20 * time.Second
)

// absent returns the status of a task that neither squeue nor sacct lists, or whose end
// sacct does not report. Slurm's output can lag, and a restarted controller may take a
// while, so the status stays unchanged for some time.
func (e *Executor) absent(t app.Task, k *tracked) (app.TaskStatus, error) {
	o, err := readOutcome(t.Dir)
	if o != nil || err != nil {
		return ended(o), err
	}
	if r, ok, err := e.lists.findToken(t.Token); ok && err == nil && r != k.row { // its list was split
		k.row, k.missing = r, 0
	}
	if !e.snapshot.complete(k.row.Name) {
		return e.asBefore(t, k)
	}
	if !e.justSubmitted(k.row.Name) && k.round != e.snapshot.round {
		if k.missing == 0 {
			k.missingAt = e.snapshot.at
		}
		k.missing++
		k.round = e.snapshot.round
	}
	if e.snapshot.names[k.row.Name] && k.missing > 1 {
		if s, ok, err := e.dropped(t, k); ok || err != nil {
			return s, err
		}
	}
	_, isClaimed, err := claimed(t.Dir)
	number := e.lists.number(k.row.Name)
	neverSeen := number == "" && !isClaimed && !e.snapshot.names[k.row.Name]
	switch {
	case err != nil:
		return app.TaskStatus{}, err
	case neverSeen && !task.StopRequested(t.Dir) && e.missingFor(k, min(againAfter, e.options.LostAfter)):
		return e.resubmit(t, k)
	case isClaimed && k.missing >= lostRounds && e.workerGone(t):
		return e.orphan(t, k)
	case !e.missingFor(k, e.options.LostAfter):
		return e.asBefore(t, k)
	case isClaimed:
		return e.orphan(t, k)
	case task.StopRequested(t.Dir):
		return app.TaskStatus{State: app.TaskLost, Reason: "Slurm has no job for it"}, nil
	}
	return app.TaskStatus{State: app.TaskLost, Reason: strings.TrimSpace("Slurm no longer knows its job " + numbered(k.row, number).Job)}, nil
}

// dropped returns the status of a task of an array that Slurm knows, but without this
// task: Slurm keeps no record of an array task canceled while queued. Without accounting,
// the task may also have begun and been forgotten.
func (e *Executor) dropped(t app.Task, k *tracked) (s app.TaskStatus, ok bool, err error) {
	_, isClaimed, err := claimed(t.Dir)
	if isClaimed || err != nil {
		return s, false, err
	}
	d := ending{jobRecord: jobRecord{TaskID: k.row, State: "CANCELLED"}, stopped: task.StopRequested(t.Dir), refused: readRejection(t.Dir), tracked: k}
	if d.canceledByOther() && (e.snapshot.noAccounting || !e.missingFor(k, e.options.LostAfter)) {
		return s, false, nil
	}
	return d.status(), true, nil
}

// missingFor reports whether a task has been missing for at least that long since its
// last submission.
func (e *Executor) missingFor(k *tracked, long time.Duration) bool {
	since := k.missingAt
	if submitted := e.submissions.lastSubmitted(k.row.Name); submitted.After(since) {
		since = submitted
	}
	return k.missing >= lostRounds && e.snapshot.at.Sub(since) >= long
}

// asBefore returns the status of a task for which there is no new information.
func (e *Executor) asBefore(t app.Task, k *tracked) (app.TaskStatus, error) {
	why := e.submissions.whyPending(k.row.Name)
	if why == "" {
		why = e.unseen(k)
	}
	if !k.startedAt.IsZero() {
		s, err := e.alive(t, k, jobRecord{})
		s.Reason = why
		return s, err
	}
	return app.TaskStatus{State: app.TaskStarting, Reason: why}, nil
}

// unseen returns the reason to show while Slurm does not list the task's job, or no
// longer does.
func (e *Executor) unseen(k *tracked) string {
	const notYet = "the cluster does not list its job yet"
	if k.missing < lostRounds {
		return notYet
	}
	number := e.lists.number(k.row.Name)
	if number == "" {
		return notYet
	}
	return fmt.Sprintf("Slurm no longer lists job %s; if it does not reappear within %v, the job is marked as lost", numbered(k.row, number).Job, e.options.LostAfter)
}

// workerGone reports whether a task is a worker whose process was seen to exit. That is
// final: nothing else runs in a claimed directory.
func (e *Executor) workerGone(t app.Task) bool {
	if !isWorker(t) {
		return false
	}
	gone, err := e.processGone(t.Dir)
	return gone && err == nil
}

// orphan returns the status of a task that began and that Slurm has forgotten, as after a
// crash of its controller. The task may still run, and then ends like any other. Its lock
// shows whether it runs; if the file system does not share locks between machines, its
// time limit decides.
func (e *Executor) orphan(t app.Task, k *tracked) (app.TaskStatus, error) {
	lost := app.TaskStatus{State: app.TaskLost, Reason: "Slurm has no record of its job, and its process has exited"}
	locked, lockErr := task.Locked(t.Dir)
	switch {
	case lockErr != nil && !noLocks(lockErr):
		return app.TaskStatus{}, lockErr
	case locked:
		return e.alive(t, k, jobRecord{})
	}
	run, err := task.ReadRun(t.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, task.ErrUnreadable):
		return lost, nil // it never began
	case err != nil:
		return app.TaskStatus{}, err
	case t.Limit <= 0, lockErr == nil && e.locks.reliable(run), e.options.overdue(t, run):
		return lost, nil
	}
	return e.alive(t, k, jobRecord{})
}

// noLocks reports whether the error means that the file system does not support locks.
func noLocks(err error) bool {
	return errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.EOPNOTSUPP)
}

// resubmit submits a name again if Slurm, queried several times, knows no job of that
// name, and no job ever claimed an attempt. If the first submission appears after all,
// the claim keeps the task from running twice.
func (e *Executor) resubmit(t app.Task, k *tracked) (app.TaskStatus, error) {
	name := k.row.Name
	if e.end.Err() == nil && e.submissions.maySubmitAgain(name) {
		e.parts.Go(func() { e.submissions.finish(name, e.submitter.again(e.end, name, t)) })
	}
	return app.TaskStatus{State: app.TaskStarting, Reason: "it is being resubmitted to Slurm"}, nil
}
