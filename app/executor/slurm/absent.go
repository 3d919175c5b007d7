package slurm

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"molrun/app"
	"molrun/app/fault"
	"molrun/app/task"
)

// lostRounds is in how many rounds Slurm must not know a task before anything
// follows from it.
const lostRounds = 3

// absent tells of a task that neither squeue nor sacct knows, or whose end
// sacct did not hear of. An answer may come late, a controller that was
// restarted may take a while: so for some time the task is as before.
func (e *Executor) absent(t app.Task, k *tracked) (app.TaskStatus, error) {
	o, err := readOutcome(t.Dir)
	if o != nil || err != nil {
		return ended(o), err
	}
	if !e.view.complete(k.row.Name) {
		return e.asBefore(t, k)
	}
	if !e.justSubmitted(k.row.Name) && k.round != e.view.round {
		if k.missing == 0 {
			k.missingAt = e.view.at
		}
		k.missing++
		k.round = e.view.round
	}
	if e.view.names[k.row.Name] && k.missing > 1 {
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
	case task.StopAsked(t.Dir):
		return app.TaskStatus{State: app.TaskLost, Reason: "Slurm has no job of it"}, nil
	case number != "":
		return app.TaskStatus{State: app.TaskLost, Reason: fmt.Sprintf("Slurm no longer knows its job %s", k.row.numbered(number).Job)}, nil
	}
	return e.resubmit(t, k)
}

// dropped tells of a task of an array that Slurm knows, but without this task:
// of one that is cancelled while it waits Slurm keeps nothing at all. Where
// there is no accounting it may as well have begun and be forgotten.
func (e *Executor) dropped(t app.Task, k *tracked) (s app.TaskStatus, ok bool, err error) {
	_, isClaimed, err := claimed(t.Dir)
	if isClaimed || err != nil {
		return s, false, err
	}
	d := ending{record: record{row: k.row, state: "CANCELLED"}, stopped: task.StopAsked(t.Dir), refused: readRefusal(t.Dir), tracked: k}
	if d.foreign() && (e.view.without || !e.missingForGood(k)) {
		return s, false, nil
	}
	return d.status(), true, nil
}

// missingForGood reports whether a task has been missing long enough, counted
// from its last submission on.
func (e *Executor) missingForGood(k *tracked) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	submitted := e.fresh[k.row.Name]
	since := k.missingAt
	if submitted.After(since) {
		since = submitted
	}
	return k.missing >= lostRounds && e.view.at.Sub(since) >= e.options.LostAfter
}

// asBefore tells of a task of which nothing new is known.
func (e *Executor) asBefore(t app.Task, k *tracked) (app.TaskStatus, error) {
	if !k.startedAt.IsZero() {
		return e.alive(t, k, record{})
	}
	e.mu.Lock()
	why := e.refusal[k.row.Name]
	e.mu.Unlock()
	if why == "" {
		why = "the cluster does not show its job yet"
	}
	return app.TaskStatus{State: app.TaskStarting, Reason: why}, nil
}

// orphan tells of a task that has begun and that Slurm has forgotten, as after
// a crash of its controller. It may still run, and then ends as any other. Its
// lock tells; where the file system has none that all machines see, its time
// limit does.
func (e *Executor) orphan(t app.Task, k *tracked) (app.TaskStatus, error) {
	lost := app.TaskStatus{State: app.TaskLost, Reason: "Slurm has forgotten its job, and the process is gone"}
	locked, lockErr := task.Locked(t.Dir)
	switch {
	case lockErr != nil && !noLocks(lockErr):
		return app.TaskStatus{}, lockErr
	case locked:
		return e.alive(t, k, record{})
	}
	run, err := task.ReadRun(t.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, task.ErrUnreadable):
		return lost, nil // it never began
	case err != nil:
		return app.TaskStatus{}, err
	case t.Limit <= 0, lockErr == nil && e.locks.tell(run), e.overdue(t, run):
		return lost, nil
	}
	return e.alive(t, k, record{})
}

// noLocks reports whether the file system has no locks at all.
func noLocks(err error) bool {
	return errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.EOPNOTSUPP)
}

// resubmit submits a name again of which Slurm, asked several times, knows
// nothing and of which no job has ever claimed anything. Should the first
// submission turn up after all, the claim keeps the task from running twice.
func (e *Executor) resubmit(t app.Task, k *tracked) (app.TaskStatus, error) {
	name := k.row.Name
	s := app.TaskStatus{State: app.TaskStarting, Reason: "it is submitted to Slurm again"}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.again[name] || e.end.Err() != nil {
		return s, nil
	}
	e.again[name] = true
	e.parts.Go(func() { e.submitAgain(name, t) })
	return s, nil
}

func (e *Executor) submitAgain(name string, t app.Task) {
	err := func() error {
		tasks, err := e.lists.read(name)
		if err != nil {
			return err
		}
		r, err := e.requestOf(e.end, t)
		if err != nil {
			return err
		}
		_, err = e.sbatch(e.end, r, name, len(tasks))
		return err
	}()
	no, refused := errors.AsType[*fault.Error](err)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.again, name)
	e.fresh[name] = time.Now() // whatever happened: not at once again
	if refused && no.Code == fault.Invalid {
		e.refused[name] = no.Message
	}
}

// refusedAgain tells why a name can't be submitted, "" where it can.
func (e *Executor) refusedAgain(name string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refused[name]
}
