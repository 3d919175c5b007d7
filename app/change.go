package app

import (
	"context"
	"fmt"
	"slices"

	"molrun/app/base/fault"
	"molrun/app/base/unit"
)

// Cancel stops a job, or all rows of a batch. A queued job fails at once; a
// running one is stopped, and fails when its processes are gone. A finished job
// stays as it is. Jobs that wait for it fail too. Of a large batch, no row starts any more,
// and the rest fail little by little.
func (s *Jobs) Cancel(ctx context.Context, by Caller, name string) (Record, error) {
	return s.cancel(ctx, by, name, false)
}

// CancelAlone is Cancel, but jobs that wait for it wait on, until it is tried again.
func (s *Jobs) CancelAlone(ctx context.Context, by Caller, name string) (Record, error) {
	return s.cancel(ctx, by, name, true)
}

func (s *Jobs) cancel(ctx context.Context, by Caller, name string, keepDependants bool) (Record, error) {
	return s.change(ctx, by, name, func(tx Tx, j *Job) error {
		asked := PendingChange{By: by.Email, KeepsDependants: keepDependants}
		if !j.IsBatch() {
			return s.stop(tx, j, asked, nil)
		}
		if j.Status.Finished() && j.Private.Pending == nil {
			return nil
		}
		j.Private.Pending = &asked
		j.Private.KeepsDependants = j.Private.KeepsDependants || keepDependants && !j.Status.Finished()
		_, err := s.changeRows(tx, j)
		return err
	})
}

// stop fails a queued job, and marks a claimed one for the runner to stop. The batch of which
// it is a row is stored by the caller, unless it is nil.
func (c *core) stop(tx Tx, j *Job, a PendingChange, batch *Job) error {
	from := j.Status
	if from.Finished() || j.Private.Stop {
		return nil
	}
	j.Private.KeepsDependants = a.KeepsDependants
	switch {
	case j.Private.Claimed:
		j.Private.Stop, j.Private.StopBy = true, a.By
		j.StatusReason = beingStopped
	default:
		j.fail(Failure{Code: FailedStopped, Message: fmt.Sprintf("The job was stopped by %s before it started.", a.By)}, unit.At(c.now()))
	}
	_, err := putCounted(tx, j, from, batch)
	return err
}

// Retry queues a failed job again, or the failed rows of a batch: of a large one, some at once
// and the others little by little.
func (s *Jobs) Retry(ctx context.Context, by Caller, name string) (Record, error) {
	for begun := false; ; begun = true {
		rec, again, err := s.tryAgain(ctx, by, name, begun)
		if err != nil || !again {
			return rec, err
		}
	}
}

// tryAgain is Retry of a job, or of some rows of a batch. It reports whether none of those
// could be tried again, and more are left.
func (s *Jobs) tryAgain(ctx context.Context, by Caller, name string, begun bool) (rec Record, again bool, err error) {
	rec, err = s.change(ctx, by, name, func(tx Tx, j *Job) error {
		again = false
		stopping, err := stoppingBatch(tx, j)
		switch {
		case err != nil:
			return err
		case stopping != nil:
			return fault.Errorf(fault.JobNotFailed, "batch %q is still being cancelled; retry in a few seconds", stopping.Name)
		case begun && j.Private.Pending == nil: // others have gone on with it
			return nil
		case !j.IsBatch() && j.Status != Failed:
			return fault.Errorf(fault.JobNotFailed, "job %q is %s; only a FAILED job can be retried", name, j.Status)
		case !j.IsBatch():
			if err := s.admitJobs(tx, j.Organization, j.Email, 1); err != nil {
				return err
			}
			return s.retry(tx, j, nil)
		}
		if j.Private.Pending == nil {
			if err := s.admitJobs(tx, j.Organization, j.Email, j.Counts.Failed); err != nil {
				return err
			}
			j.Private.Pending = &PendingChange{Retry: true, By: by.Email, Left: j.Counts.Failed}
		}
		did, err := s.changeRows(tx, j)
		again = did.retried == 0 && j.Private.Pending != nil
		switch {
		case err != nil || did.retried > 0 || again:
			return err
		case did.refused != nil:
			return did.refused
		}
		return fault.Errorf(fault.JobNotFailed, "no job of batch %q has failed; there is nothing to retry", name)
	})
	return rec, again, err
}

// retry queues a failed job again, or a row while all failed rows of its batch are tried
// again, which the caller stores. It is refused if a file that it reads is gone, or another job has to be tried again first.
func (c *core) retry(tx Tx, j, batch *Job) error {
	waits, blocking, err := remaining(tx, j, batch)
	if err == nil && blocking == nil {
		var gone int
		if gone, err = goneReference(tx, j.Private.References); gone >= 0 {
			in := j.Inputs[gone]
			return fault.Errorf(fault.InputRemoved, "the file %q of setting %q, which job %q reads, was deleted; upload it again and submit the job under another name", in.Filename, in.Setting, j.Name)
		}
	}
	switch {
	case err != nil:
		return err
	case blocking == nil:
		_, err = c.requeue(tx, j, waits, batch)
		return err
	case batch != nil:
		// Rows that were tried again before it may wait for it.
		j.failDependency(*blocking, j.CompletedAt)
		j.Private.Unpropagated = true
		if err := tx.PutJob(j); err != nil {
			return err
		}
	}
	return fault.Errorf(fault.DependencyFailed, "job %q waits for job %q, which has failed or was deleted; retry %q first", j.Name, blocking.Name, blocking.Name)
}

// Pin exempts a job, or a batch with all its rows, from retention and prune. It
// can still be deleted by hand. Pin is idempotent.
func (s *Jobs) Pin(ctx context.Context, by Caller, name string) (Record, error) {
	return s.change(ctx, by, name, func(tx Tx, j *Job) error {
		if j.Pinned {
			return nil // the first user who pinned it stays on record
		}
		j.Pinned, j.Private.PinnedBy, j.Private.PinnedAt = true, by.Email, unit.At(s.now())
		return tx.PutJob(j)
	})
}

// Unpin makes a job subject to retention and prune again.
func (s *Jobs) Unpin(ctx context.Context, by Caller, name string) (Record, error) {
	return s.change(ctx, by, name, func(tx Tx, j *Job) error {
		if !j.Pinned {
			return nil
		}
		j.Pinned, j.Private.PinnedBy, j.Private.PinnedAt = false, "", unit.Time{}
		return tx.PutJob(j)
	})
}

// Label changes the tags and the note of a job or batch, and who is notified of its end.
// Only what is given changes.
func (s *Jobs) Label(ctx context.Context, by Caller, name string, l Labels, faults []fault.Field) (Record, error) {
	if err := fault.List(slices.Concat(faults, l.faults(by, s.options.Notices))...); err != nil {
		return nil, err
	}
	return s.change(ctx, by, name, func(tx Tx, j *Job) error {
		if err := j.label(l); err != nil {
			return err
		}
		return tx.PutJob(j)
	})
}

// change runs fn on a job that the caller may change, and returns its record
// afterwards. fn reads jobs from tx, changes and puts them.
func (s *Jobs) change(ctx context.Context, by Caller, name string, fn func(Tx, *Job) error) (Record, error) {
	var stored StoredJob
	var batch JobID
	var changed []JobID
	var hasRows bool
	err := s.store.Update(ctx, func(tx Tx) error {
		j, err := changeable(tx, by, name)
		if err != nil {
			return err
		}
		stored.ID, batch, hasRows = j.ID, j.Private.Batch, j.IsBatch()
		if err := fn(tx, j); err != nil {
			return err
		}
		if changed, err = s.propagateSome(tx); err != nil {
			return err
		}
		stored.JSON, err = tx.JobJSON(j.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.wakeRunner()
	s.changes.Notify(append(changed, stored.ID, batch)...)
	if hasRows {
		s.wakeRows()
		s.notifyRows(ctx, stored.ID)
	}
	return s.WithLiveState(stored), nil
}

// notifyRows wakes those who wait for a row of a batch that changed as a whole.
func (s *Jobs) notifyRows(ctx context.Context, batch JobID) {
	waiting := s.changes.Watched()
	if len(waiting) == 0 {
		return
	}
	var rows []JobID
	_ = s.store.View(ctx, func(tx Tx) error { // a missed wake-up only delays an answer
		for _, id := range waiting {
			if j, err := tx.Job(id); err == nil && j.Private.Batch == batch {
				rows = append(rows, id)
			}
		}
		return nil
	})
	s.changes.Notify(rows...)
}
