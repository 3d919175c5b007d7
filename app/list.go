package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"molrun/app/cursor"
	"molrun/app/fault"
	"molrun/app/naming"
	"molrun/app/sortid"
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
	JobSelection
	Subjobs  bool // batches carry up to 1,000 of their rows
	Statuses bool // the listing counts its jobs by status
	Count    bool // the listing counts its jobs
	Limit    int
	StartKey string
	Faults   []fault.Field // found while decoding
}

// JobSelection says which jobs a caller asks for, and in which order.
type JobSelection struct {
	Name, Batch, Email, Algorithm string
	Status                        []Status // one of them
	Tags                          []Tag    // all of them
	Search                        string
	Since, Until                  time.Time // when it was submitted or, in that order, completed
	WholeOrganization             bool      // else the caller's own, or those of Email
	ByCompletion, Ascending       bool
}

// Listing is a page of records and the cursor of the next page, "" on the last.
type Listing struct {
	Records  []json.RawMessage
	StartKey string
	Statuses *Counts // where they were asked for: of the user, the organization or the batch, whatever the other filters
	Count    *Count  // where it was asked for
}

// Count is a number of jobs, at least that if there may be more.
type Count struct {
	Jobs int
	More bool
}

// maxCount is how far a listing counts.
const maxCount = 10_000

// List returns jobs, newest first unless asked for in another order.
func (s *Jobs) List(ctx context.Context, by Caller, q JobQuery) (*Listing, error) {
	f, faults := q.filter(by)
	listing := q.scopeOfCursor(f)
	after, err := s.readCursor(q.StartKey, slices.Concat(q.Faults, faults), listing...)
	if err != nil {
		return nil, err
	}
	out := &Listing{}
	var page JobPage
	subjobs := map[JobID]*subjobsView{}
	err = s.store.View(ctx, func(tx Tx) error {
		if err := q.count(tx, &f, out); errors.Is(err, fault.NotFound) { // no such batch
			return nil
		} else if err != nil {
			return err
		}
		var err error
		if page, err = tx.Jobs(f, after, q.Limit); err != nil || !q.Subjobs {
			return err
		}
		return s.collectSubjobs(tx, page, subjobs)
	})
	if err != nil {
		return nil, err
	}
	out.Records = make([]json.RawMessage, len(page.Jobs))
	for i, j := range page.Jobs {
		out.Records[i] = subjobs[j.ID].addTo(s.show(j))
	}
	if page.Next != "" {
		out.StartKey = s.cursors.Make(string(page.Next), listing...)
	}
	return out, nil
}

// Summary counts jobs, exactly if they are selected by user, type and status alone,
// else as far as a listing gets at once.
func (s *Jobs) Summary(ctx context.Context, by Caller, q JobSelection, faults []fault.Field) (*Summary, error) {
	f, more := q.filter(by)
	if err := fault.List(slices.Concat(faults, more)...); err != nil {
		return nil, err
	}
	var sum *Summary
	err := s.store.View(ctx, func(tx Tx) error {
		sum = &Summary{Types: map[string]*Counts{}, Users: map[string]*Counts{}}
		if f.summed() && q.Batch == "" {
			return sum.addSummed(tx, f)
		}
		if q.Batch != "" {
			batch, err := findBatch(tx, f.Organization, q.Batch)
			if errors.Is(err, fault.NotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			f.Batch = batch.ID
		}
		return sum.addListed(tx, f)
	})
	return sum, err
}

// filter returns what the store has to look for, the batch aside, and what is wrong
// with the query.
func (q JobSelection) filter(by Caller) (f JobFilter, faults []fault.Field) {
	if q.ByCompletion && (q.Name != "" || q.Batch != "") {
		faults = append(faults, fault.Field{
			Loc: []any{"query", "sort"}, Type: "value",
			Msg: "leave sort out with jobName or batch: these are listed in the order of submission",
		})
	}
	f = JobFilter{
		Organization: by.Organization, Email: strings.ToLower(q.Email),
		Type: q.Algorithm, Name: q.Name, Tags: q.Tags, Search: naming.Fold(q.Search),
		From: q.Since, Until: q.Until, ByCompletion: q.ByCompletion, Ascending: q.Ascending,
	}
	for _, s := range Statuses {
		if slices.Contains(q.Status, s) {
			f.Statuses = append(f.Statuses, s)
		}
	}
	if f.Email == "" && !q.WholeOrganization {
		f.Email = by.Email
	}
	return f, faults
}

// scopeOfCursor lists what a cursor is bound to. The first parts are those of API
// 1.0, whose cursors stay valid.
func (q JobSelection) scopeOfCursor(f JobFilter) []string {
	statuses := make([]string, len(f.Statuses))
	for i, s := range f.Statuses {
		statuses[i] = string(s)
	}
	scope := []string{"jobs", f.Organization, f.Email, f.Type, strings.Join(statuses, ","), f.Name, q.Batch}
	later := func(f JobFilter) string {
		return fmt.Sprintf("%q %q %v %v %t %t", f.Tags, f.Search, f.From, f.Until, f.ByCompletion, f.Ascending)
	}
	if text := later(f); text != later(JobFilter{}) {
		scope = append(scope, text)
	}
	return scope
}

// count finds the batch of the filter, and counts what was asked for. It fails with
// NotFound if there is no such batch.
func (q JobQuery) count(tx Tx, f *JobFilter, out *Listing) error {
	*out = Listing{}
	if q.Count {
		out.Count = &Count{}
	}
	if q.Statuses {
		out.Statuses = &Counts{}
	}
	if q.Batch != "" {
		batch, err := findBatch(tx, f.Organization, q.Batch)
		if err != nil {
			return err
		}
		f.Batch = batch.ID
		if q.Statuses {
			out.Statuses = batch.Counts
		}
	} else if q.Statuses {
		counts, err := tx.Statuses(f.Organization, f.Email)
		if err != nil {
			return err
		}
		out.Statuses = &counts
	}
	if !q.Count {
		return nil
	}
	n, more, err := tx.CountJobs(*f, maxCount)
	out.Count = &Count{n, more}
	return err
}

// findBatch returns a batch of the organization by its name or ID.
func findBatch(tx Tx, organization, ref string) (*Job, error) {
	j, err := tx.JobNamed(organization, ref)
	if _, bad := sortid.Parse(ref); errors.Is(err, fault.NotFound) && bad == nil {
		if j, err = tx.Job(JobID(ref)); err == nil && j.Organization != organization {
			return nil, fault.NotFound
		}
	}
	if err == nil && !j.IsBatch() {
		return nil, fault.NotFound
	}
	return j, err
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

// Record is a job's JSON as clients see it now, live state included.
type Record = json.RawMessage

// show adds a job's live state to its stored record.
func (c *core) show(j StoredJob) json.RawMessage {
	c.live.mu.Lock()
	progress, runs := c.live.progress[j.ID]
	reason, waits := c.live.reasons[j.ID]
	c.live.mu.Unlock()
	switch status, hasReason := statusOf(j.JSON); {
	case runs && status == Running:
		return strictjson.Append(j.JSON, "progress", progress)
	case status != Queued || hasReason:
	case waits:
		return strictjson.Append(j.JSON, "statusReason", reason)
	default:
		if e := executorOf(j.JSON); e != "" && !c.router.Has(e) {
			return strictjson.Append(j.JSON, "statusReason", "waiting: the executor "+e+" is no longer configured here; ask an administrator, or cancel the job and submit it again")
		}
	}
	return j.JSON
}

// statusOf reads the status out of a stored record, and whether it is followed by
// a statusReason. It goes by position: both members stand before everything that
// users write but names, whose quotes are escaped.
func statusOf(record []byte) (status Status, hasReason bool) {
	_, rest, _ := bytes.Cut(record, []byte(`"status":"`))
	text, rest, _ := bytes.Cut(rest, []byte(`"`))
	hasReason = bytes.HasPrefix(rest, []byte(`,"statusReason":`))
	for _, s := range Statuses {
		if string(text) == string(s) {
			return s, hasReason // without a copy
		}
	}
	return Status(text), hasReason
}

// executorOf reads the executor out of the record of a queued job, "" if the rows
// of a batch have several. Behind the last jobEmail, settings and inputs are over,
// so that no member of theirs can be taken for the record's own.
func executorOf(record []byte) string {
	_, rest, _ := bytes.Cut(record[max(0, bytes.LastIndex(record, []byte(`"jobEmail":"`))):], []byte(`"executor":"`))
	name, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(name)
}

// readCursor returns the position in the cursor of a listing, "" for no cursor. The
// error has the faults of the query that are known, and that of the cursor.
func (c *core) readCursor(text string, known []fault.Field, listing ...string) (Position, error) {
	if text == "" {
		return "", fault.List(known...)
	}
	position, err := c.cursors.Read(text, listing...)
	if err != nil && !(errors.Is(err, cursor.ErrListing) && otherListing(known)) {
		known = append(slices.Clone(known), fault.Field{
			Loc: []any{"query", "startKey"}, Type: "value",
			Msg: "this startKey is not of this listing; use the one from the page before with the same filters, or leave it out",
		})
	}
	return Position(position), fault.List(known...)
}

// otherListing reports whether the faults of a query may hide which listing was
// meant, so that nobody can tell whether a cursor belongs to it.
func otherListing(faults []fault.Field) bool {
	return slices.ContainsFunc(faults, func(f fault.Field) bool {
		return len(f.Loc) < 2 || !slices.Contains([]any{"limit", "includeSubjobs", "statuses", "count"}, f.Loc[1])
	})
}
