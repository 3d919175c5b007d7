package storage

import (
	"bytes"
	"fmt"

	"molrun/app"
	"molrun/app/base/events"
	"molrun/app/base/sortid"
	"molrun/storage/kv"
)

// Jobs returns a page. The index jobs.lists has a range for each combination of user,
// algorithm and status, so a page costs the same with a thousand jobs as with a million,
// even if nothing matches. Filters without an index are tested on the candidates from
// another index, and the number of tests per page is limited.
func (t tx) Jobs(f app.JobFilter, after app.Position, limit int) (app.JobPage, error) {
	found, next, err := t.findJobs(f, after, limit)
	if err != nil {
		return app.JobPage{}, fmt.Errorf("list jobs: %w", err)
	}
	page := make([]app.StoredJob, 0, len(found))
	letters := make([]byte, 0, len(found)*sortid.Length)
	size := 0
	records := t.Walk(bucketJobs)
	for i, end := range found {
		id, _ := end.LastID() // findJobs has checked it
		if records.Seek(id[:]); !bytes.Equal(records.Key, id[:]) {
			return app.JobPage{}, fmt.Errorf("list jobs: %w", noJob(id.String()))
		}
		letters = id.Append(letters)
		page = append(page, app.StoredJob{JSON: records.Value[:len(records.Value):len(records.Value)]})
		if size += len(records.Value); size >= app.PageBytes && i < len(found)-1 {
			next = app.Position(end)
			break
		}
	}
	text := string(letters) // all IDs in one allocation
	for i := range page {
		page[i].ID = app.JobID(text[i*sortid.Length : (i+1)*sortid.Length])
	}
	return app.JobPage{Jobs: page, Next: next}, nil
}

// Uploads returns a page, newest first.
func (t tx) Uploads(f app.UploadFilter, after app.Position, limit int) (page app.UploadPage, err error) {
	page.Uploads = make([]*app.Upload, 0, min(limit, app.MaxPage))
	index, prefix := indexUploadsList, listPrefix(f.Organization, f.Email, f.Folder)
	if f.SHA256 != "" { // few files match, so the folder of each can be checked
		index, prefix = indexUploadsDigest, digestKey(f.Organization, f.Email, f.SHA256)
	}
	of := candidates{index: index, prefixes: []kv.Key{prefix}}
	for end := range t.walkCandidates(of, boundsOf(app.JobFilter{}, after), false) {
		id, err := end.LastID()
		if err != nil {
			return page, fmt.Errorf("list files: %w", err)
		}
		u, err := readUpload(t.Tx, id)
		if err != nil {
			return page, fmt.Errorf("list files: %w", err)
		}
		if f.Folder != "" && u.Folder != f.Folder {
			continue
		}
		if len(page.Uploads) == limit {
			page.Next = after
			break
		}
		page.Uploads, after = append(page.Uploads, u), app.Position(end)
	}
	return page, nil
}

// LastEvent returns the position of an organization's newest event.
func (t tx) LastEvent(organization string) (events.ID, error) { return t.LastEntry(organization) }

// EventsAfter returns up to limit events of an organization after a position.
func (t tx) EventsAfter(organization string, after events.ID, limit int) (all []events.Entry, known bool, err error) {
	entries, known, err := t.EntriesAfter(organization, after)
	if err != nil || !known {
		return nil, false, err
	}
	for e, err := range entries {
		switch {
		case err != nil:
			return nil, false, err
		case len(all) == limit:
			return all, true, nil
		}
		e.Value = bytes.Clone(e.Value)
		all = append(all, e)
	}
	return all, true, nil
}

const (
	indexJobsList    = "jobs.lists"
	indexJobsTag     = "jobs.tags"
	indexJobsText    = "jobs.text"
	indexUploadsList = "uploads.list"
)

// jobList indexes jobs other than subjobs by each combination of user and type, by
// status and by id. A listing of all statuses merges four walks, so it needs no further
// entries.
func jobList(id sortid.ID, j *app.Job) []kv.Entry {
	if j.Private.Batch != "" {
		return nil
	}
	all := listings(j.Organization, j.Email, j.Type)
	for i := range all {
		all[i].Key = all[i].Key.Letter(statusLetter(j.Status)).ID(id)
	}
	return all
}

// uploadList indexes uploads by each combination of filters and by id.
func uploadList(id sortid.ID, u *app.Upload) []kv.Entry {
	all := listings(u.Organization, u.Email, u.Folder)
	for i := range all {
		all[i].Key = all[i].Key.ID(id)
	}
	return all
}

// listings returns entries with the listing prefixes of all combinations of filters.
func listings(organization string, filters ...string) []kv.Entry {
	all := make([]kv.Entry, 1<<len(filters))
	for used := range all {
		all[used].Key = listKey(byte(used), organization, filters)
	}
	return all
}

// listPrefix returns the prefix of the listing for the non-empty filters.
func listPrefix(organization string, filters ...string) kv.Key {
	var used byte
	for i, f := range filters {
		if f != "" {
			used |= 1 << i
		}
	}
	return listKey(used, organization, filters)
}

// listKey returns a key that consists of a bit set of the filters in use, the
// organization, and the values of these filters.
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

// jobTag indexes jobs other than subjobs by organization, user (with an extra entry for
// all users), key and value of a tag, and id.
func jobTag(id sortid.ID, j *app.Job) []kv.Entry {
	if j.Private.Batch != "" {
		return nil
	}
	all := make([]kv.Entry, 0, 2*len(j.Tags))
	for key, value := range j.Tags {
		tag := app.Tag{Key: key, Value: value}
		all = append(all, kv.Entry{Key: tagKey(j.Organization, "", tag).ID(id)})
		if j.Email != "" {
			all = append(all, kv.Entry{Key: tagKey(j.Organization, j.Email, tag).ID(id)})
		}
	}
	return all
}

func tagKey(organization, email string, tag app.Tag) kv.Key {
	return make(kv.Key, 0, 128).Text(organization).Text(email).Text(tag.Key).Text(tag.Value)
}

// jobText indexes by id the jobs that have tags or a note, except subjobs. The value is
// the search text. Other jobs are searched by name only.
func jobText(id sortid.ID, j *app.Job) []kv.Entry {
	if j.Private.Batch != "" || len(j.Tags) == 0 && j.Note == "" {
		return nil
	}
	return []kv.Entry{{Key: kv.Key{}.ID(id), Value: []byte(j.SearchedText())}}
}
