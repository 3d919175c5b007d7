package app

import (
	"context"
	"errors"
	"fmt"

	"molrun/app/fault"
	"molrun/app/unit"
)

// changeable finds a job that the caller may change.
func changeable(tx Tx, by Caller, name string) (*Job, error) {
	j, err := jobNamed(tx, by, name)
	if err == nil && !by.May(j.Email) {
		return nil, fault.Errorf(fault.Forbidden, "job %q was submitted by %s; ask them or an admin of the organization", name, j.Email)
	}
	return j, err
}

// Cancel ends a job, or all rows of a batch. What waits fails at once; what
// runs is stopped, and fails when its processes are gone. A finished job
// stays as it is.
func (s *Service) Cancel(ctx context.Context, by Caller, name string) (Record, error) {
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

// change runs fn on a job that the caller may change and gives its record
// after. fn gets jobs from tx, changes and puts them.
func (s *Service) change(ctx context.Context, by Caller, name string, fn func(Tx, *Job) error) (Record, error) {
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
	s.changes.tell(stored.ID, batch)
	if hasRows {
		s.tellRows(ctx, stored.ID)
	}
	return s.show(stored), nil
}

// tellRows wakes those who wait for rows of a batch that changed as a whole.
func (s *Service) tellRows(ctx context.Context, batch JobID) {
	s.changes.mu.Lock()
	waiting := make([]JobID, 0, len(s.changes.waiting))
	for id := range s.changes.waiting {
		waiting = append(waiting, id)
	}
	s.changes.mu.Unlock()
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
	s.changes.tell(rows...)
}

// stop ends a job that waits and marks one that is claimed for the runner.
func (s *Service) stop(tx Tx, j *Job, by Caller) error {
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

// fail ends a job.
func (j *Job) fail(f Failure, at unit.Time) {
	j.Status, j.StatusReason = Failed, ""
	j.Failure = &f
	j.CompletedAt = at
	j.release()
}

// release forgets what belongs to the current attempt alone.
func (j *Job) release() {
	p := &j.Private
	p.Claimed, p.Stop, p.StopBy, p.Token, p.Handle, p.GPUs = false, false, "", "", "", nil
}

// Retry queues a failed job again, or the failed rows of a batch.
func (s *Service) Retry(ctx context.Context, by Caller, name string) (Record, error) {
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

// requeue makes a failed job as if just submitted, but for its attempts.
func (s *Service) requeue(tx Tx, j *Job) error {
	from := j.Status
	j.Status, j.StatusReason = Queued, ""
	j.StartedAt, j.CompletedAt = unit.Time{}, unit.Time{}
	j.Failure, j.Metrics, j.ResultBytes, j.Isolation = nil, nil, nil, ""
	j.release()
	j.Private.QueuedAt, j.Private.Lost = unit.At(s.now()), 0
	_, err := putChanged(tx, j, from)
	return err
}

// Delete removes a finished job, or a batch with all its rows, and frees its
// disk at once.
func (s *Service) Delete(ctx context.Context, by Caller, name string) error {
	var gone []JobID
	err := s.store.Update(ctx, func(tx Tx) error {
		gone = nil
		j, err := changeable(tx, by, name)
		if err != nil {
			return err
		}
		rows, err := withRows(tx, j)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := removable(tx, row); err != nil {
				return err
			}
			gone = append(gone, row.ID)
		}
		return deleteJobs(tx, rows)
	})
	if err != nil {
		return err
	}
	return s.removeJobs(gone)
}

// removable says why a job can't be deleted now.
func removable(tx Tx, j *Job) error {
	if !j.Status.Finished() {
		return fault.Errorf(fault.JobNotFinished, "job %q is %s; cancel it or wait for its end, then delete it", j.Name, j.Status)
	}
	id, err := tx.NeededBy(string(j.ID))
	if errors.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return inUse(tx, fmt.Sprintf("the result of job %q", j.Name), id)
}

// inUse is the error that a job still reads something.
func inUse(tx Tx, what string, id JobID) error {
	reader, err := tx.Job(id)
	if err != nil {
		return err
	}
	return fault.Errorf(fault.FileInUse, "%s is read by job %q, which is %s; wait for its end or cancel it", what, reader.Name, reader.Status)
}

// deleteJobs deletes a job, a batch with its rows, or one row of a batch,
// whose counts then follow.
func deleteJobs(tx Tx, jobs []*Job) error {
	for _, j := range jobs {
		if err := tx.DeleteJob(j.ID); err != nil {
			return err
		}
	}
	if jobs[0].Private.Batch == "" {
		return nil
	}
	parent, err := tx.Job(jobs[0].Private.Batch)
	if err != nil {
		return err
	}
	parent.forget(jobs[0])
	return tx.PutJob(parent)
}
