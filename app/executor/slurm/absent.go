package slurm

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"molrun/app"
	"molrun/app/executor/slurm/client"
	"molrun/app/task"
)

// lostRounds is how many rounds a task has to be unknown to Slurm before anything
// follows from it.
const lostRounds = 3

// absent returns the status of a task that neither squeue nor sacct knows, or
// whose end sacct has not heard. An answer may be late, and a restarted controller
// may take a while, so for some time the status stays unchanged.
func (e *Executor) absent(t app.Task, k *tracked) (app.TaskStatus, error) {
	o, err := readOutcome(t.Dir)
	if o != nil || err != nil {
		return ended(o), err
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
	if !e.missingForGood(k) {
		return e.asBefore(t, k)
	}
	_, isClaimed, err := claimed(t.Dir)
	switch number := e.lists.number(k.row.Name); {
	case err != nil:
		return app.TaskStatus{}, err
	case isClaimed:
		return e.orphan(t, k)
	case task.StopRequested(t.Dir):
		return app.TaskStatus{State: app.TaskLost, Reason: "Slurm has no job of it"}, nil
	case number != "":
		return app.TaskStatus{State: app.TaskLost, Reason: fmt.Sprintf("Slurm no longer knows its job %s", numbered(k.row, number).Job)}, nil
	}
	return e.resubmit(t, k)
}

// dropped returns the status of a task of an array that Slurm knows, but without
// this task: of one that is cancelled while queued Slurm keeps no record. Without
// accounting, the task may also have begun and been forgotten.
func (e *Executor) dropped(t app.Task, k *tracked) (s app.TaskStatus, ok bool, err error) {
	_, isClaimed, err := claimed(t.Dir)
	if isClaimed || err != nil {
		return s, false, err
	}
	d := ending{Record: client.Record{Row: k.row, State: "CANCELLED"}, stopped: task.StopRequested(t.Dir), refused: readRefusal(t.Dir), tracked: k}
	if d.foreign() && (e.snapshot.without || !e.missingForGood(k)) {
		return s, false, nil
	}
	return d.status(), true, nil
}

// missingForGood reports whether a task has been missing long enough since its
// last submission.
func (e *Executor) missingForGood(k *tracked) bool {
	since := k.missingAt
	if submitted := e.submissions.last(k.row.Name); submitted.After(since) {
		since = submitted
	}
	return k.missing >= lostRounds && e.snapshot.at.Sub(since) >= e.options.LostAfter
}

// asBefore returns the status of a task about which nothing new is known.
func (e *Executor) asBefore(t app.Task, k *tracked) (app.TaskStatus, error) {
	if !k.startedAt.IsZero() {
		return e.alive(t, k, client.Record{})
	}
	why := cmp.Or(e.submissions.whyPending(k.row.Name), "the cluster does not show its job yet")
	return app.TaskStatus{State: app.TaskStarting, Reason: why}, nil
}

// orphan returns the status of a task that began and that Slurm has forgotten, as
// after a crash of its controller. It may still run, and then it ends like any
// other. Its lock shows that; if the file system has no locks that all machines
// see, its time limit does.
func (e *Executor) orphan(t app.Task, k *tracked) (app.TaskStatus, error) {
	lost := app.TaskStatus{State: app.TaskLost, Reason: "Slurm has forgotten its job, and the process is gone"}
	locked, lockErr := task.Locked(t.Dir)
	switch {
	case lockErr != nil && !noLocks(lockErr):
		return app.TaskStatus{}, lockErr
	case locked:
		return e.alive(t, k, client.Record{})
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
	return e.alive(t, k, client.Record{})
}

// noLocks reports whether the file system has no locks at all.
func noLocks(err error) bool {
	return errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.EOPNOTSUPP)
}

// resubmit submits a name again of which Slurm, asked several times, knows
// nothing, and of which no job ever claimed an attempt. If the first submission
// turns up after all, the claim keeps the task from running twice.
func (e *Executor) resubmit(t app.Task, k *tracked) (app.TaskStatus, error) {
	name := k.row.Name
	if e.end.Err() == nil && e.submissions.begin(name) {
		e.parts.Go(func() { e.submissions.finish(name, e.submitter.again(e.end, name, t)) })
	}
	return app.TaskStatus{State: app.TaskStarting, Reason: "it is submitted to Slurm again"}, nil
}
