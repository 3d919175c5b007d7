package app

import (
	"context"
	"fmt"
	"slices"

	"molrun/app/fault"
	"molrun/app/unit"
)

// Cancel stops a job, or all rows of a batch. A queued job fails at once; a
// running one is stopped, and fails when its processes are gone. A finished job
// stays as it is.
func (s *Jobs) Cancel(ctx context.Context, by Caller, name string) (Record, error) {
	return s.change(ctx, by, name, func(tx Tx, j *Job) error {
		if !j.IsBatch() {
			return s.stop(tx, j, by)
		}
		for row, err := range tx.Subjobs(j.ID, "") {
			if err == nil {
				err = s.stop(tx, row, by)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// stop fails a queued job, and marks a claimed one for the runner to stop.
func (s *Jobs) stop(tx Tx, j *Job, by Caller) error {
	from := j.Status
	switch {
	case from.Finished() || j.Private.Stop:
		return nil
	case j.Private.Claimed:
		j.Private.Stop, j.Private.StopBy = true, by.Email
		j.StatusReason = "being stopped"
	default:
		j.fail(Failure{Code: FailedStopped, Message: fmt.Sprintf("The job was stopped by %s before it started.", by.Email)}, unit.At(s.now()))
	}
	_, err := putChanged(tx, j, from)
	return err
}

// Retry queues a failed job again, or the failed rows of a batch.
func (s *Jobs) Retry(ctx context.Context, by Caller, name string) (Record, error) {
	return s.change(ctx, by, name, func(tx Tx, j *Job) error {
		if !j.IsBatch() {
			if j.Status != Failed {
				return fault.Errorf(fault.JobNotFailed, "job %q is %s; only a FAILED job can be tried again", name, j.Status)
			}
			if err := s.admitJobs(tx, j.Organization, 1); err != nil {
				return err
			}
			return s.requeue(tx, j)
		}
		if err := s.admitJobs(tx, j.Organization, j.Counts.Failed); err != nil {
			return err
		}
		retried := 0
		for row, err := range tx.Subjobs(j.ID, Failed) {
			if err == nil {
				err = s.requeue(tx, row)
			}
			if err != nil {
				return err
			}
			retried++
		}
		if retried == 0 {
			return fault.Errorf(fault.JobNotFailed, "no row of batch %q has failed; there is nothing to try again", name)
		}
		return nil
	})
}

// requeue resets a failed job as if it had just been submitted, except for its
// attempts.
func (s *Jobs) requeue(tx Tx, j *Job) error {
	from := j.Status
	j.Status, j.StatusReason = Queued, ""
	j.StartedAt, j.CompletedAt = unit.Time{}, unit.Time{}
	j.Failure, j.Metrics, j.ResultBytes, j.Isolation = nil, nil, nil, ""
	j.release()
	j.Private.QueuedAt, j.Private.Lost = unit.At(s.now()), 0
	_, err := putChanged(tx, j, from)
	return err
}

// Pin exempts a job, or a batch with all its rows, from retention and prune. It
// can still be deleted by hand. Pin is idempotent.
func (s *Jobs) Pin(ctx context.Context, by Caller, name string) (Record, error) {
	return s.change(ctx, by, name, func(tx Tx, j *Job) error {
		if j.Pinned {
			return nil // whoever pinned it first stays on record
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

// Label changes the tags and the note of a job or batch. Only what is given
// changes.
func (s *Jobs) Label(ctx context.Context, by Caller, name string, l Labels, faults []fault.Field) (Record, error) {
	if err := fault.List(slices.Concat(faults, l.faults())...); err != nil {
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
		stored.JSON, err = tx.JobJSON(j.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.wakeRunner()
	s.changes.notify(stored.ID, batch)
	if hasRows {
		s.notifyRows(ctx, stored.ID)
	}
	return s.Show(stored), nil
}

// notifyRows wakes those who wait for a row of a batch that changed as a whole.
func (s *Jobs) notifyRows(ctx context.Context, batch JobID) {
	waiting := s.changes.watched()
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
	s.changes.notify(rows...)
}
