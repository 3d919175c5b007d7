package app

import (
	"context"
	"errors"
	"fmt"

	"molrun/app/base/fault"
)

// Delete removes a finished job, or a batch with all its rows. Its disk space is freed as
// soon as no download reads its files.
func (s *Jobs) Delete(ctx context.Context, by Caller, name string) error {
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

// removable returns an error if a job can't be deleted now.
func removable(tx Tx, j *Job) error {
	if !j.Status.Finished() {
		return fault.Errorf(fault.JobNotFinished, "job %q is %s; cancel it or wait until it has finished, then delete it", j.Name, j.Status)
	}
	for _, how := range []Dependence{WaitsForSuccess, WaitsForEnd} {
		for id, err := range tx.Dependants(j.ID, how) {
			if err != nil {
				return err
			}
			return errAwaited(tx, j, id)
		}
	}
	if j.Private.Unpropagated {
		return fault.Errorf(fault.FileInUse, "jobs that depend on job %q are still being updated; try again in a few seconds", j.Name)
	}
	id, err := tx.NeededBy(string(j.ID))
	if errors.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return ErrInUse(tx, fmt.Sprintf("the result of job %q", j.Name), id)
}

// errAwaited returns the error for deleting a job that another one waits for.
func errAwaited(tx Tx, j *Job, id JobID) error {
	dependant, err := tx.Job(id)
	if err != nil {
		return err
	}
	return fault.Errorf(fault.FileInUse, "job %q waits for job %q; cancel it first, or retry %q", dependant.Name, j.Name, j.Name)
}

// ErrInUse returns the error for deleting something that an unfinished job reads.
func ErrInUse(tx Tx, what string, id JobID) error {
	reader, err := tx.Job(id)
	if err != nil {
		return err
	}
	return fault.Errorf(fault.FileInUse, "%s is needed by job %q, which is %s; wait until it has finished or cancel it", what, reader.Name, reader.Status)
}

// deleteJobs deletes a job, a batch with its rows, or one row of a batch. In the last
// case, it updates the counts of the batch.
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
	parent.subtract(jobs[0])
	return tx.PutJob(parent)
}

// removeJobs removes the files of jobs whose records have been deleted.
func (s *Jobs) removeJobs(ids []JobID) (err error) {
	for _, id := range ids {
		if removeErr := s.blobs.RemoveJob(id); removeErr != nil {
			err = errors.Join(err, fmt.Errorf("remove files of job %s: %w", id, removeErr))
		}
	}
	s.changes.Notify(ids...)
	return err
}
