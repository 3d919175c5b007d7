package app

import (
	"context"
	"errors"
	"time"

	"molrun/app/algorithm"
	"molrun/app/base/fault"
)

// Jobs submits, lists, changes and deletes jobs, and creates links to their results.
type Jobs struct{ *core }

// MaxWait is the maximum time a client can wait for a job to change.
const MaxWait = time.Minute

// Get returns the record of a job. With wait > 0 it returns when the status changes, when
// the job has finished, or after wait.
func (s *Jobs) Get(ctx context.Context, by Caller, name string, wait time.Duration) (Record, error) {
	j, err := s.readStored(ctx, by, name)
	if err != nil || wait <= 0 {
		return s.WithLiveState(j), err
	}
	timer := time.NewTimer(min(wait, MaxWait))
	defer timer.Stop()
	before := headOf(j.JSON).status
	for {
		changed, release := s.changes.Watch(j.ID)
		j, err = s.readStored(ctx, by, name)
		if now := headOf(j.JSON).status; err != nil || now != before || now.Finished() {
			release()
			return s.WithLiveState(j), err
		}
		select {
		case <-changed:
			release()
		case <-timer.C:
			release()
			return s.WithLiveState(j), nil
		case <-ctx.Done():
			release()
			return nil, ctx.Err()
		}
	}
}

// Algorithm returns the algorithm file that a job was validated against.
func (s *Jobs) Algorithm(ctx context.Context, j *Job) (*algorithm.File, error) {
	return s.algorithmOf(ctx, j)
}

// readStored returns the stored record of a job of the caller's organization.
func (s *Jobs) readStored(ctx context.Context, by Caller, name string) (stored StoredJob, err error) {
	err = s.store.View(ctx, func(tx Tx) error {
		j, err := jobNamed(tx, by, name)
		if err != nil {
			return err
		}
		stored.ID = j.ID
		stored.JSON, err = tx.JobJSON(j.ID)
		return err
	})
	return stored, err
}

// Named returns a job of the caller's organization. The caller owns the returned Job.
func (s *Jobs) Named(ctx context.Context, by Caller, name string) (j *Job, err error) {
	err = s.store.View(ctx, func(tx Tx) (err error) {
		j, err = jobNamed(tx, by, name)
		return err
	})
	return j, err
}

// FindJob returns a job of the caller's organization.
func (s *Jobs) FindJob(tx Tx, by Caller, name string) (*Job, error) { return jobNamed(tx, by, name) }

func jobNamed(tx Tx, by Caller, name string) (*Job, error) {
	j, err := tx.JobNamed(by.Organization, name)
	if errors.Is(err, fault.NotFound) {
		return nil, fault.Errorf(fault.NotFound, "there is no job %q in your organization; GET /jobs?organization=true lists them", name)
	}
	return j, err
}

// changeable returns a job that the caller is allowed to change.
func changeable(tx Tx, by Caller, name string) (*Job, error) {
	j, err := jobNamed(tx, by, name)
	if err == nil && !by.May(j.Email) {
		return nil, fault.Errorf(fault.Forbidden, "job %q was submitted by %s; ask them or an admin of the organization", name, j.Email)
	}
	return j, err
}

// withRows returns a job, followed by its rows if it is a batch.
func withRows(tx Tx, j *Job) ([]*Job, error) {
	rows := []*Job{j}
	if !j.IsBatch() {
		return rows, nil
	}
	for row, err := range tx.Subjobs(j.ID, "") {
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}
