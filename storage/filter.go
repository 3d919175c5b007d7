package storage

import (
	"bytes"
	"fmt"

	"molrun/app"
)

// Jobs gives a page. Each combination of filters is a walk of the one index
// that holds them all, so a page costs the same at a thousand jobs as at a
// million, and also where nothing fits.
func (t *tx) Jobs(f app.JobFilter, before app.JobID, limit int) (app.JobPage, error) {
	ids, more, err := t.jobIDs(f, string(before), limit)
	if err != nil {
		return app.JobPage{}, fmt.Errorf("list jobs: %w", err)
	}
	stored := make([][]byte, 0, len(ids))
	size := 0
	records := t.walk(bucketJobs)
	for _, id := range ids {
		if records.seek(id[:]); !bytes.Equal(records.key, id[:]) {
			return app.JobPage{}, fmt.Errorf("list jobs: %w", noJob(id.String()))
		}
		stored = append(stored, records.value)
		if size += len(records.value); size >= app.EnoughBytes {
			break
		}
	}
	return app.JobPage{Jobs: copyJobs(ids, stored, size), More: more || len(stored) < len(ids)}, nil
}

// copyJobs copies records out of the transaction, all into one piece of memory.
func copyJobs(ids []app.IDBytes, stored [][]byte, size int) []app.StoredJob {
	page := make([]app.StoredJob, len(stored))
	records, letters := make([]byte, 0, size), make([]byte, 0, len(stored)*app.IDLength)
	for i, record := range stored {
		begin := len(records)
		records = append(records, record...)
		page[i].JSON = records[begin:len(records):len(records)]
		letters = ids[i].Append(letters)
	}
	text := string(letters)
	for i := range page {
		page[i].ID = app.JobID(text[i*app.IDLength : (i+1)*app.IDLength])
	}
	return page
}

func (t *tx) jobIDs(f app.JobFilter, before string, limit int) ([]app.IDBytes, bool, error) {
	switch {
	case f.Name != "":
		return t.page(indexJobsName, nameKey(f.Organization, f.Name), before, limit, t.fits(f))
	case f.Batch != "":
		batch, err := app.ParseID(string(f.Batch))
		if err != nil {
			return nil, false, nil
		}
		return t.page(indexJobsBatch, batchKey(batch, f.Status), before, limit, once(t.fits(f)))
	}
	prefix := listOf(f.Organization, jobFilters(f.Email, f.Type, f.Status)...)
	return t.page(indexJobsList, prefix, before, limit, nil)
}

// fits reads a record and tests it against a filter.
func (t *tx) fits(f app.JobFilter) func(app.IDBytes) (bool, error) {
	equal := func(want, have string) bool { return want == "" || want == have }
	return func(id app.IDBytes) (bool, error) {
		j, err := readJob(t, id)
		if err != nil {
			return false, err
		}
		return j.Organization == f.Organization &&
			equal(f.Email, j.Email) &&
			equal(f.Type, j.Type) &&
			equal(string(f.Status), string(j.Status)) &&
			equal(string(f.Batch), string(j.Private.Batch)), nil
	}
}

// once tests the first row for all: the rows of a batch share organization,
// user and type, as they come from one submission.
func once(fits func(app.IDBytes) (bool, error)) func(app.IDBytes) (bool, error) {
	asked, fit := false, false
	return func(id app.IDBytes) (_ bool, err error) {
		if !asked {
			fit, err = fits(id)
			asked = true
		}
		return fit, err
	}
}

// page gives the last IDs with a prefix that are below before, newest first,
// and whether there are more. A nil fits takes all.
func (t *tx) page(index string, prefix key, before string, limit int, fits func(app.IDBytes) (bool, error)) (ids []app.IDBytes, more bool, err error) {
	bound := prefix.end()
	if before != "" {
		id, err := app.ParseID(before)
		if err != nil {
			return nil, false, fmt.Errorf("begin before %q: %w", before, err)
		}
		bound = append(bytes.Clone(prefix), id[:]...)
	}
	ids = make([]app.IDBytes, 0, min(limit, app.MaxPage))
	for k := range t.descend(index, prefix, bound) {
		id, err := k.lastID()
		if err != nil {
			return nil, false, err
		}
		if fits != nil {
			if fit, err := fits(id); err != nil {
				return nil, false, err
			} else if !fit {
				continue
			}
		}
		if len(ids) == limit {
			return ids, true, nil
		}
		ids = append(ids, id)
	}
	return ids, false, nil
}
