package app

import (
	"context"
	"fmt"
	"slices"

	"molrun/app/base/fault"
	"molrun/app/base/unit"
)

// Cancel stops a job, or all rows of a batch. A queued job fails at once; a running job
// is stopped and fails when its processes have exited. A finished job is unchanged. Jobs
// that wait for it fail too. In a large batch, no further rows start, and later
// transactions fail the remaining ones.
func (s *Jobs) Cancel(ctx context.Context, by Caller, name string) (Record, error) {
	return s.cancel(ctx, by, name, false)
}

// CancelAlone is Cancel, but jobs that wait for it keep waiting until it is retried.
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

// stop fails a queued job and marks a claimed one for the runner to stop. If batch is not
// nil, the job is one of its rows, and the caller stores the batch.
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

// Retry requeues a failed job, or the failed rows of a batch. In a large batch, some rows
// are requeued at once and the rest in later transactions.
func (s *Jobs) Retry(ctx context.Context, by Caller, name string) (Record, error) {
	for begun := false; ; begun = true {
		rec, again, err := s.retryOnce(ctx, by, name, begun)
		if err != nil || !again {
			return rec, err
		}
	}
}

// retryOnce retries a job, or some rows of a batch. again means that it could not requeue
// any of these rows but that others remain to be tried.
func (s *Jobs) retryOnce(ctx context.Context, by Caller, name string, begun bool) (rec Record, again bool, err error) {
	rec, err = s.change(ctx, by, name, func(tx Tx, j *Job) error {
		again = false
		stopping, err := stoppingBatch(tx, j)
		switch {
		case err != nil:
			return err
		case stopping != nil:
			return fault.Errorf(fault.JobNotFailed, "batch %q is still being cancelled; retry in a few seconds", stopping.Name)
		case begun && j.Private.Pending == nil: // another transaction completed the retry
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
		case did.retryError != nil:
			return did.retryError
		}
		return fault.Errorf(fault.JobNotFailed, "no job of batch %q has failed; there is nothing to retry", name)
	})
	return rec, again, err
}

// retry requeues a failed job. If batch is not nil, all failed rows of that batch are
// being retried, the job is one of them, and the caller stores the batch. It returns an
// error if an input file has been deleted or another job must be retried first.
func (c *core) retry(tx Tx, j, batch *Job) error {
	waits, blocking, err := remaining(tx, j, batch)
	if err == nil && blocking == nil {
		var gone int
		if gone, err = deletedReference(tx, j.Private.References); gone >= 0 {
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
		// Rows retried earlier may be waiting for this one.
		j.failDependency(*blocking, j.CompletedAt)
		j.Private.Unpropagated = true
		if err := tx.PutJob(j); err != nil {
			return err
		}
	}
	return fault.Errorf(fault.DependencyFailed, "job %q waits for job %q, which has failed or was deleted; retry %q first", j.Name, blocking.Name, blocking.Name)
}

// Pin exempts a job, or a batch with all its rows, from retention and prune. The job can
// still be deleted manually. Pin is idempotent.
func (s *Jobs) Pin(ctx context.Context, by Caller, name string) (Record, error) {
	return s.change(ctx, by, name, func(tx Tx, j *Job) error {
		if j.Pinned {
			return nil // keep the first user who pinned it
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

// Label changes the tags, the note and the notification recipients of a job or batch.
// Fields that are not given stay unchanged.
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

// change runs fn on a job that the caller is allowed to change, and returns the resulting
// record. fn must read jobs through tx and store the ones that it changes.
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

// notifyRows wakes clients that wait for rows of a batch after a change to the whole
// batch.
func (s *Jobs) notifyRows(ctx context.Context, batch JobID) {
	waiting := s.changes.Watched()
	if len(waiting) == 0 {
		return
	}
	var rows []JobID
	_ = s.store.View(ctx, func(tx Tx) error { // a missed wake-up only delays a response
		for _, id := range waiting {
			if j, err := tx.Job(id); err == nil && j.Private.Batch == batch {
				rows = append(rows, id)
			}
		}
		return nil
	})
	s.changes.Notify(rows...)
}
