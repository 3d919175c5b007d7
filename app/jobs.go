package app

import (
	"context"
	"errors"

	"molrun/app/fault"
)

// Jobs submits, lists, changes and deletes jobs, and links to their results.
type Jobs struct{ *core }

// read returns a job of the caller's organization as stored.
func (s *Jobs) read(ctx context.Context, by Caller, name string) (stored StoredJob, err error) {
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

// jobNamed returns a job of the caller's organization.
func jobNamed(tx Tx, by Caller, name string) (*Job, error) {
	j, err := tx.JobNamed(by.Organization, name)
	if errors.Is(err, fault.NotFound) {
		return nil, fault.Errorf(fault.NotFound, "there is no job %q in your organization; GET /jobs?organization=true lists them", name)
	}
	return j, err
}

// changeable returns a job that the caller may change.
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
