package storage

import (
	"bytes"
	"fmt"

	"molrun/app"
	"molrun/app/sortid"
	"molrun/storage/kv"
)

// Jobs returns a page. The index jobs.list has an entry for each combination of
// filters, so a page costs the same at a thousand jobs as at a million, even if
// nothing matches.
func (t tx) Jobs(f app.JobFilter, before app.JobID, limit int) (app.JobPage, error) {
	var l listing
	switch {
	case f.Name != "":
		l = listing{indexJobsName, nameKey(f.Organization, f.Name), t.matches(f)}
	case f.Batch != "":
		batch, err := sortid.Parse(string(f.Batch))
		if err != nil {
			return app.JobPage{}, nil
		}
		l = listing{indexJobsBatch, batchKey(batch, f.Status), once(t.matches(f))}
	default:
		l = listing{indexJobsList, listPrefix(f.Organization, jobFilters(f.Email, f.Type, f.Status)...), nil}
	}
	ids, more, err := t.page(l, string(before), limit)
	if err != nil {
		return app.JobPage{}, fmt.Errorf("list jobs: %w", err)
	}

	stored := make([][]byte, 0, len(ids))
	size := 0
	records := t.Walk(bucketJobs)
	for _, id := range ids {
		if records.Seek(id[:]); !bytes.Equal(records.Key, id[:]) {
			return app.JobPage{}, fmt.Errorf("list jobs: %w", noJob(id.String()))
		}
		stored = append(stored, records.Value)
		if size += len(records.Value); size >= app.EnoughBytes {
			break
		}
	}
	return app.JobPage{Jobs: copyJobs(ids, stored, size), More: more || len(stored) < len(ids)}, nil
}

// matches returns a test of a job's record against a filter.
func (t tx) matches(f app.JobFilter) func(sortid.ID) (bool, error) {
	equal := func(want, have string) bool { return want == "" || want == have }
	return func(id sortid.ID) (bool, error) {
		j, err := readJob(t.Tx, id)
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

// once lets the result for the first row stand for all: the rows of a batch
// come from one submission, so they share organization, user and type.
func once(matches func(sortid.ID) (bool, error)) func(sortid.ID) (bool, error) {
	asked, match := false, false
	return func(id sortid.ID) (_ bool, err error) {
		if !asked {
			match, err = matches(id)
			asked = true
		}
		return match, err
	}
}

// listing is a part of an index whose keys begin with prefix.
type listing struct {
	index   string
	prefix  kv.Key
	matches func(sortid.ID) (bool, error) // nil matches all
}

// page returns the last IDs of a listing below before, newest first, and
// whether there are more.
func (t tx) page(l listing, before string, limit int) (ids []sortid.ID, more bool, err error) {
	bound := l.prefix.End()
	if before != "" {
		id, err := sortid.Parse(before)
		if err != nil {
			return nil, false, fmt.Errorf("begin before %q: %w", before, err)
		}
		bound = append(bytes.Clone(l.prefix), id[:]...)
	}
	ids = make([]sortid.ID, 0, min(limit, app.MaxPage))
	for k := range t.Descend(l.index, l.prefix, bound) {
		id, err := k.LastID()
		if err != nil {
			return nil, false, err
		}
		if l.matches != nil {
			if match, err := l.matches(id); err != nil {
				return nil, false, err
			} else if !match {
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

// copyJobs copies records out of the transaction, all into one allocation.
func copyJobs(ids []sortid.ID, stored [][]byte, size int) []app.StoredJob {
	page := make([]app.StoredJob, len(stored))
	records, letters := make([]byte, 0, size), make([]byte, 0, len(stored)*sortid.Length)
	for i, record := range stored {
		begin := len(records)
		records = append(records, record...)
		page[i].JSON = records[begin:len(records):len(records)]
		letters = ids[i].Append(letters)
	}
	text := string(letters)
	for i := range page {
		page[i].ID = app.JobID(text[i*sortid.Length : (i+1)*sortid.Length])
	}
	return page
}

// Uploads returns a page, newest first.
func (t tx) Uploads(f app.UploadFilter, before app.UploadID, limit int) (app.UploadPage, error) {
	l := listing{indexUploadsList, listPrefix(f.Organization, f.Email, f.Folder), nil}
	ids, more, err := t.page(l, string(before), limit)
	if err != nil {
		return app.UploadPage{}, fmt.Errorf("list files: %w", err)
	}
	page := app.UploadPage{Uploads: make([]*app.Upload, len(ids)), More: more}
	for i, id := range ids {
		if page.Uploads[i], err = readUpload(t.Tx, id); err != nil {
			return app.UploadPage{}, fmt.Errorf("list files: %w", err)
		}
	}
	return page, nil
}

const (
	indexJobsList    = "jobs.list"
	indexUploadsList = "uploads.list"
)

// jobList: each combination of filters, id; no subjobs.
func jobList(id sortid.ID, j *app.Job) []kv.Entry {
	if j.Private.Batch != "" {
		return nil
	}
	return listEntries(id, j.Organization, jobFilters(j.Email, j.Type, j.Status)...)
}

func jobFilters(email, typ string, status app.Status) []string {
	letter := ""
	if status != "" {
		letter = string(statusLetter(status))
	}
	return []string{email, typ, letter}
}

// uploadList: each combination of filters, id.
func uploadList(id sortid.ID, u *app.Upload) []kv.Entry {
	return listEntries(id, u.Organization, u.Email, u.Folder)
}

// listEntries returns a record's entries in the listings of all combinations of
// filters.
func listEntries(id sortid.ID, organization string, filters ...string) []kv.Entry {
	all := make([]kv.Entry, 1<<len(filters))
	for used := range all {
		all[used].Key = listKey(byte(used), organization, filters).ID(id)
	}
	return all
}

// listPrefix returns the prefix of the listing with the filters that are not
// empty.
func listPrefix(organization string, filters ...string) kv.Key {
	var used byte
	for i, f := range filters {
		if f != "" {
			used |= 1 << i
		}
	}
	return listKey(used, organization, filters)
}

// listKey: bits of the filters in use, organization, values of these filters.
func listKey(used byte, organization string, filters []string) kv.Key {
	k := make(kv.Key, 0, 128)
	k = k.Letter(used).Text(organization)
	for i, f := range filters {
		if used&(1<<i) != 0 {
			k = k.Text(f)
		}
	}
	return k
}
