package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"molrun/app/fault"
	"molrun/app/strictjson"
)

// Limits of listings.
const (
	MaxPage          = 100
	DefaultPage      = 50
	maxShownSubjobs  = 1000    // of one batch
	maxListedSubjobs = 5000    // of all batches of a page
	EnoughBytes      = 4 << 20 // of a page: no more jobs are added
	enoughSubjobs    = 6 << 20 // bytes of those of a page, likewise
	// MaxWait is how long a client may wait for a job's change.
	MaxWait = time.Minute
)

// JobQuery selects and pages jobs; an empty field selects all.
type JobQuery struct {
	Name, Batch, Email, Algorithm string
	Status                        Status
	WholeOrganization             bool // else the caller's own, or those of Email
	Subjobs                       bool // batches carry up to 1,000 of their rows
	Statuses                      bool // the listing counts its jobs by status
	Limit                         int
	StartKey                      string
}

// Listing is a page of records and the cursor of the next page, "" on the last.
type Listing struct {
	Records  []json.RawMessage
	StartKey string
	Statuses *Counts // where they were asked for: of the user, the organization or the batch, whatever the other filters
}

// List returns jobs, newest first.
func (s *Jobs) List(ctx context.Context, by Caller, q JobQuery) (*Listing, error) {
	f := JobFilter{
		Organization: by.Organization, Email: strings.ToLower(q.Email),
		Type: q.Algorithm, Status: q.Status, Name: q.Name,
	}
	if f.Email == "" && !q.WholeOrganization {
		f.Email = by.Email
	}
	listing := []string{"jobs", f.Organization, f.Email, f.Type, string(f.Status), f.Name, q.Batch}
	before, err := s.cursors.read(q.StartKey, listing...)
	if err != nil {
		return nil, err
	}
	var page JobPage
	var statuses *Counts
	subjobs := map[JobID]*subjobsView{}
	err = s.store.View(ctx, func(tx Tx) error {
		if q.Batch != "" {
			batch, err := findBatch(tx, by.Organization, q.Batch)
			if errors.Is(err, fault.NotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			f.Batch, statuses = batch.ID, batch.Counts
		}
		var err error
		if q.Statuses && q.Batch == "" {
			counts, err := tx.Statuses(f.Organization, f.Email)
			if err != nil {
				return err
			}
			statuses = &counts
		}
		if page, err = tx.Jobs(f, JobID(before), q.Limit); err != nil || !q.Subjobs {
			return err
		}
		return s.collectSubjobs(tx, page, subjobs)
	})
	if err != nil {
		return nil, err
	}
	out := &Listing{Records: make([]json.RawMessage, len(page.Jobs))}
	if q.Statuses {
		out.Statuses = cmp.Or(statuses, &Counts{}) // of no batch of that name, nothing
	}
	for i, j := range page.Jobs {
		out.Records[i] = subjobs[j.ID].addTo(s.show(j))
	}
	if page.More {
		out.StartKey = s.cursors.make(string(page.Jobs[len(page.Jobs)-1].ID), listing...)
	}
	return out, nil
}

// subjobsView is the rows that the record of a batch carries.
type subjobsView struct {
	records   []json.RawMessage
	truncated bool
}

// addTo adds the rows to the record of a batch; a nil view adds nothing.
func (v *subjobsView) addTo(record json.RawMessage) json.RawMessage {
	if v == nil {
		return record
	}
	return strictjson.Append(strictjson.Append(record, "subjobs", v.records), "subjobsTruncated", v.truncated)
}

// collectSubjobs reads the rows of the batches on a page, up to 5,000 rows or
// some megabytes in all, so that the answer stays bounded.
func (s *Jobs) collectSubjobs(tx Tx, page JobPage, views map[JobID]*subjobsView) error {
	left, size := maxListedSubjobs, 0
	for _, j := range page.Jobs {
		var batch struct {
			Counts *Counts `json:"subjobCounts"`
		}
		if err := json.Unmarshal(j.JSON, &batch); err != nil {
			return err
		}
		if batch.Counts == nil {
			continue
		}
		view, err := s.subjobsOf(tx, j.ID, min(maxShownSubjobs, left), &size)
		if err != nil {
			return err
		}
		views[j.ID] = view
		left -= len(view.records)
	}
	return nil
}

// subjobsOf reads up to limit rows of a batch and adds their bytes to size.
func (s *Jobs) subjobsOf(tx Tx, batch JobID, limit int, size *int) (*subjobsView, error) {
	view := &subjobsView{records: []json.RawMessage{}}
	for sub, err := range tx.Subjobs(batch, "") {
		if err != nil {
			return nil, err
		}
		if len(view.records) >= limit || *size >= enoughSubjobs {
			view.truncated = true
			break
		}
		record, err := tx.JobJSON(sub.ID)
		if err != nil {
			return nil, err
		}
		*size += len(record)
		view.records = append(view.records, s.show(StoredJob{sub.ID, record}))
	}
	return view, nil
}

// Get returns the record of a job. With wait > 0 it returns when the status
// changes, when the job is finished, or when wait is over.
func (s *Jobs) Get(ctx context.Context, by Caller, name string, wait time.Duration) (Record, error) {
	j, err := s.read(ctx, by, name)
	if err != nil || wait <= 0 {
		return s.show(j), err
	}
	timer := time.NewTimer(min(wait, MaxWait))
	defer timer.Stop()
	before, _ := statusOf(j.JSON)
	for {
		changed, release := s.changes.watch(j.ID)
		j, err = s.read(ctx, by, name)
		if now, _ := statusOf(j.JSON); err != nil || now != before || now.Finished() {
			release()
			return s.show(j), err
		}
		select {
		case <-changed:
			release()
		case <-timer.C:
			release()
			return s.show(j), nil
		case <-ctx.Done():
			release()
			return nil, ctx.Err()
		}
	}
}
