package simulation

import (
	"fmt"
	"slices"

	"molrun/app"
)

// awaited reports whether any queued job waits for the given job.
func (l *ledger) awaited(id app.JobID) bool {
	for _, e := range l.jobs {
		if e.Status == app.Queued && e.waitsFor(id) {
			return true
		}
	}
	return false
}

func (e *entry) waitsFor(id app.JobID) bool {
	return slices.ContainsFunc(e.Private.Waits, func(w app.Dependency) bool { return w.Job == id })
}

// cannotRetry reports whether a failed job cannot be retried because a dependency has
// failed or was deleted. If a batch is retried as a whole, dependencies within the batch
// do not count.
func (l *ledger) cannotRetry(e *entry, batch app.JobID) bool {
	return slices.ContainsFunc(e.Private.Waits, func(w app.Dependency) bool {
		d := l.jobs[w.Job]
		return l.dooms(w) && (batch == "" || d == nil || d.Private.Batch != batch)
	})
}

func (l *ledger) dooms(w app.Dependency) bool {
	d := l.jobs[w.Job]
	return d == nil || d.Status == app.Failed && !w.Any && !d.Private.KeepsDependants
}

// stalled reports whether a job waits, directly or indirectly, for one that was stopped
// without its dependents and has not been retried.
func (l *ledger) stalled(e *entry) bool {
	if e.IsBatch() {
		for _, row := range l.rows(e.ID) {
			if !row.Status.Finished() && !l.stalled(row) {
				return false
			}
		}
		return !e.Status.Finished()
	}
	return e.Status == app.Queued && slices.ContainsFunc(e.Private.Waits, func(w app.Dependency) bool {
		d := l.jobs[w.Job]
		return d != nil && (d.Status == app.Failed && d.Private.KeepsDependants && !w.Any || !d.Status.Finished() && l.stalled(d))
	})
}

// after returns a job as it is after a commit, or nil if it no longer exists.
func (s *simulation) after(c *change, id app.JobID) *app.Job {
	if j := c.of(id); j != nil {
		if j.now == nil {
			return nil
		}
		return &j.now.Job
	}
	if e := s.ledger.jobs[id]; e != nil {
		return &e.Job
	}
	return nil
}

// onlyPropagationMark reports whether the only change is the job's mark for pending
// propagation.
func onlyPropagationMark(old *entry, now *stored) bool {
	same := now.Private
	same.Unpropagated = old.Private.Unpropagated
	return now.shown == old.shown && fmt.Sprint(same) == fmt.Sprint(old.Private)
}

// isPropagation reports whether a job changes as it does when the status of a dependency
// is propagated.
func isPropagation(old *entry, now *stored) bool {
	switch {
	case old.Status == app.Queued && now.Status == app.Queued:
		return len(now.Private.Waits) < len(old.Private.Waits)
	case now.Status == app.Failed:
		return now.Private.Cause != ""
	}
	return old.Private.Cause != "" && now.Status == app.Queued
}

// judgePropagation checks such a change against the state of the other jobs after the
// commit.
func (s *simulation) judgePropagation(c *change, old *entry, now *stored) error {
	for _, w := range old.Private.Waits {
		d := s.after(c, w.Job)
		switch stays := slices.Contains(now.Private.Waits, w); {
		case stays && now.Private.Cause == w.Job:
			if d != nil && !d.Private.Unpropagated && (d.Status != app.Failed || w.Any || d.Private.KeepsDependants) {
				return fmt.Errorf("it fails because of %s, which is %s", w.Name, d.Status)
			}
		case stays:
		case d == nil || d.Status != app.Completed && !(w.Any && d.Status.Finished()):
			return fmt.Errorf("it no longer waits for %s, which has not finished", w.Name)
		}
	}
	switch {
	case old.Private.Claimed || now.Private.Claimed || now.Attempts != old.Attempts:
		return fmt.Errorf("a job that waits is claimed")
	case now.Status == app.Failed && (now.Failure == nil || now.Failure.Code != app.FailedDependency):
		return fmt.Errorf("it fails because of another job, but its failure is %+v", now.Failure)
	case now.Status == app.Queued && old.Status == app.Failed:
		return judgeRetry(s, old, now)
	}
	return nil
}

// failsImmediately reports whether a new job is failed, as is allowed, because a
// dependency had already failed.
func (s *simulation) failsImmediately(c *change, now *stored) bool {
	if now.Status != app.Failed {
		return false
	}
	if now.IsBatch() {
		return now.Counts.Failed == now.Counts.Total()
	}
	d := s.after(c, now.Private.Cause)
	return d != nil && d.Status == app.Failed && !d.Private.KeepsDependants && now.Failure.Code == app.FailedDependency
}

// judgeInputs checks that only references to files of other jobs are resolved.
func judgeInputs(s *simulation, old *entry, now *stored) error {
	same := now.Job
	same.Inputs, same.Private.References = old.Inputs, old.Private.References
	before, err := asStored(&same)
	if err != nil {
		return err
	}
	source := s.ledger.jobs[sourceOf(&now.Job)]
	return allow(before.shown == old.shown && before.private == old.private && old.Private.Claimed &&
		source != nil && source.Status == app.Completed && now.Inputs[0].SHA256 != "", "more than its input files changed")
}
