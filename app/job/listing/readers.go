package listing

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
)

// Limits on the number of jobs that ReadersOf and DependantsOf return and examine.
const (
	maxReaders    = 100
	readersLooked = 2000
)

// Reader is a job that reads or waits for something, or a batch and the number of its
// rows that do.
type Reader struct {
	*app.Job
	Rows int
}

// ReadersOf returns the jobs that read an upload, in any status, newest first. more
// reports whether there might be further ones.
func (s *Lists) ReadersOf(ctx context.Context, by app.Caller, file string) (readers []Reader, more bool, err error) {
	err = s.store.View(ctx, func(tx app.Tx) (err error) {
		if err = within(tx, by, file); err == nil {
			readers, more, err = gather(tx, tx.Readers(file), "")
		}
		return err
	})
	return readers, more, err
}

// DependantsOf returns, like ReadersOf, the jobs that wait for a job, failed with it, or
// read its result. For a batch it includes the dependents of its rows.
func (s *Lists) DependantsOf(ctx context.Context, by app.Caller, name string) (found []Reader, more bool, err error) {
	err = s.store.View(ctx, func(tx app.Tx) error {
		j, err := s.jobs.FindJob(tx, by, name)
		if err != nil {
			return err
		}
		ids := []app.JobID{j.ID}
		if j.IsBatch() {
			rows, _, err := tx.JobIDs(app.JobFilter{Organization: j.Organization, Batch: j.ID, Ascending: true}, "", readersLooked)
			if err != nil {
				return err
			}
			ids, more = append(ids, rows...), len(rows) == readersLooked
		}
		all, left, err := gather(tx, dependants(tx, ids), j.Private.Batch)
		more = more || left
		found = slices.DeleteFunc(all, func(r Reader) bool { return r.ID == j.ID }) // rows of the batch that depend on one another
		return err
	})
	return found, more, err
}

// dependants walks the jobs that depend on any of the given jobs, repeating those that
// depend in several ways.
func dependants(tx app.Tx, ids []app.JobID) iter.Seq2[app.JobID, error] {
	return func(yield func(app.JobID, error) bool) {
		for _, id := range ids {
			for _, walk := range []iter.Seq2[app.JobID, error]{
				tx.Dependants(id, app.WaitsForSuccess), tx.Dependants(id, app.WaitsForEnd), tx.Dependants(id, app.FailedWith), tx.Readers(string(id)),
			} {
				for dependant, err := range walk {
					if !yield(dependant, err) {
						return
					}
				}
			}
		}
	}
}

// gather reads the jobs with the given IDs, newest first. It groups rows under their
// batch, except the rows of the batch own.
func gather(tx app.Tx, ids iter.Seq2[app.JobID, error], own app.JobID) (all []Reader, more bool, err error) {
	found, seen := map[app.JobID]*Reader{}, map[app.JobID]bool{}
	for id, err := range ids {
		if err == nil && len(seen) == readersLooked {
			more = true
			break
		}
		if err == nil && !seen[id] {
			seen[id] = true
			err = addReader(tx, found, id, own)
		}
		if err != nil {
			return nil, false, err
		}
	}
	for _, r := range found {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b Reader) int { return strings.Compare(string(b.ID), string(a.ID)) })
	if len(all) > maxReaders {
		all, more = all[:maxReaders], true
	}
	return all, more, nil
}

// within returns NotFound unless an upload belongs to the caller's organization.
func within(tx app.Tx, by app.Caller, file string) error {
	err := error(fault.NotFound)
	if _, bad := sortid.Parse(file); bad == nil {
		var u *app.Upload
		if u, err = tx.Upload(app.UploadID(file)); err == nil && u.Organization != by.Organization {
			err = fault.NotFound
		}
	}
	if errors.Is(err, fault.NotFound) {
		return fault.Errorf(fault.NotFound, "there is no file %q in your organization; GET /files lists yours", file)
	}
	return err
}

// addReader adds a job to found. It counts a row under its batch, unless that batch is
// own.
func addReader(tx app.Tx, found map[app.JobID]*Reader, id, own app.JobID) error {
	j, err := tx.Job(id)
	if err != nil {
		return err
	}
	rows := 0
	if batch := j.Private.Batch; batch != own && batch != "" {
		if r := found[batch]; r != nil {
			r.Rows++
			return nil
		}
		if j, err = tx.Job(batch); err != nil {
			return err
		}
		rows = 1
	}
	if found[j.ID] == nil {
		found[j.ID] = &Reader{j, rows}
	}
	return nil
}
