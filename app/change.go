package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"molrun/app/base/fault"
	"molrun/app/base/unit"
)

// Cancel stops a job, or all rows of a batch. A queued job fails at once; a
// running one is stopped, and fails when its processes are gone. A finished job
// stays as it is. Jobs that wait for it fail too.
func (s *Jobs) Cancel(ctx context.Context, by Caller, name string) (Record, error) {
	return s.cancel(ctx, by, name, false)
}

// CancelAlone is Cancel, but jobs that wait for it wait on, until it is tried again.
func (s *Jobs) CancelAlone(ctx context.Context, by Caller, name string) (Record, error) {
	return s.cancel(ctx, by, name, true)
}

func (s *Jobs) cancel(ctx context.Context, by Caller, name string, spare bool) (Record, error) {
	return s.change(ctx, by, name, func(tx Tx, j *Job) error {
		if !j.IsBatch() {
			return s.stop(tx, j, by, spare)
		}
		if spare && !j.Status.Finished() {
			j.Private.Spares = true
			if err := tx.PutJob(j); err != nil {
				return err
			}
		}
		for row, err := range tx.Subjobs(j.ID, "") {
			if err == nil {
				err = s.stop(tx, row, by, spare)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// stop fails a queued job, and marks a claimed one for the runner to stop.
func (s *Jobs) stop(tx Tx, j *Job, by Caller, spare bool) error {
	from := j.Status
	if from.Finished() || j.Private.Stop {
		return nil
	}
	j.Private.Spares = spare
	switch {
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
			if err := s.admitJobs(tx, j.Organization, j.Email, 1); err != nil {
				return err
			}
			return s.retry(tx, j, "")
		}
		if err := s.admitJobs(tx, j.Organization, j.Email, j.Counts.Failed); err != nil {
			return err
		}
		retried, refused := 0, error(nil)
		for row, err := range tx.Subjobs(j.ID, Failed) {
			if err == nil {
				err = s.retry(tx, row, j.ID)
			}
			switch {
			case errors.Is(err, fault.DependencyFailed) || errors.Is(err, fault.InputRemoved):
				refused = err
			case err != nil:
				return err
			default:
				retried++
			}
		}
		switch {
		case retried > 0:
			return nil
		case refused != nil:
			return refused
		}
		return fault.Errorf(fault.JobNotFailed, "no row of batch %q has failed; there is nothing to try again", name)
	})
}

// retry queues a failed job again, or a row while all failed rows of its batch are tried
// again. It is refused if a file that it reads is gone, or another job has to be tried again first.
func (s *Jobs) retry(tx Tx, j *Job, batch JobID) error {
	waits, doom, err := remaining(tx, j, batch)
	if err == nil && doom == nil {
		var gone int
		if gone, err = goneReference(tx, j.Private.References); gone >= 0 {
			in := j.Inputs[gone]
			return fault.Errorf(fault.InputRemoved, "the file %q of setting %q, which job %q reads, was deleted; upload it again and submit the job under another name", in.Filename, in.Setting, j.Name)
		}
	}
	switch {
	case err != nil:
		return err
	case doom == nil:
		_, err = s.requeue(tx, j, waits)
		return err
	case batch != "":
		// Rows that were tried again before it may wait for it.
		j.fall(*doom, j.CompletedAt)
		j.Private.Unsettled = true
		if err := tx.PutJob(j); err != nil {
			return err
		}
	}
	return fault.Errorf(fault.DependencyFailed, "job %q waits for job %q, which has failed or was deleted; retry %q first", j.Name, doom.Name, doom.Name)
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

// Label changes the tags and the note of a job or batch, and whom to tell of its end.
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
	var told []JobID
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
		if told, err = s.settle(tx); err != nil {
			return err
		}
		stored.JSON, err = tx.JobJSON(j.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.wakeRunner()
	s.changes.Notify(append(told, stored.ID, batch)...)
	if hasRows {
		s.notifyRows(ctx, stored.ID)
	}
	return s.Show(stored), nil
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
