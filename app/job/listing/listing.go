// Package listing answers queries for jobs and uploads: pages, counts of matching jobs,
// and tables of batches.
package listing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/base/events"
	"molrun/app/base/fault"
	"molrun/app/base/naming"
	"molrun/app/base/sortid"
	"molrun/app/base/strictjson"
)

// DefaultPage is the default number of records per page.
const DefaultPage = 50

// Lists pages through jobs and uploads.
type Lists struct {
	store   app.Store
	jobs    *app.Jobs
	cursors CursorKey
}

// New returns the lists of a store. The key, of at least 32 bytes, signs cursors.
func New(store app.Store, jobs *app.Jobs, cursors CursorKey) (*Lists, error) {
	if len(cursors) < 32 {
		return nil, errors.New("the key that signs cursors must have at least 32 bytes")
	}
	return &Lists{store, jobs, cursors}, nil
}

// Query selects and pages jobs.
type Query struct {
	Selection
	Subjobs  bool // include up to 1,000 rows of each batch
	Statuses bool // count jobs by status
	Count    bool // count the selected jobs
	Limit    int
	StartKey string
	Faults   []fault.Field // found during decoding
}

// Selection selects and orders jobs; an empty field selects all.
type Selection struct {
	Name, Batch, Email, Algorithm string
	Status                        []app.Status // any of them
	Tags                          []app.Tag    // all of them
	Search                        string
	Since, Until                  time.Time // time of submission or, with ByCompletion, completion
	WholeOrganization             bool      // otherwise only the caller's own jobs, or those of Email
	ByCompletion, Ascending       bool
	Metric                        string // orders the rows of Batch by a number in their results
}

// Page is a page of jobs as shown to clients.
type Page struct {
	Records  []app.Record
	StartKey string      // cursor of the next page, "" on the last page
	Statuses *app.Counts // if requested: of the user, the organization or the batch, regardless of the other filters
	Count    *Count      // if requested
	Event    events.ID   // position of the last event that the page reflects

	buffer *pageBuffer // holds the records
}

// Jobs returns jobs, newest first unless another order is requested.
func (l *Lists) Jobs(ctx context.Context, by app.Caller, q Query) (*Page, error) {
	f, faults := q.Filter(by)
	scope := q.scope(f)
	after, err := l.readCursor(q.StartKey, slices.Concat(q.Faults, faults), scope)
	if err != nil {
		return nil, err
	}
	out := &Page{Records: []app.Record{}}
	next := app.Position("")
	err = l.store.View(ctx, func(tx app.Tx) error {
		var err error
		if out.Event, err = tx.LastEvent(by.Organization); err != nil {
			return err
		}
		if err := q.count(tx, &f, out); err != nil {
			return err
		}
		page, err := tx.Jobs(f, after, q.Limit)
		if err != nil {
			return err
		}
		next = page.Next
		rows := map[app.JobID]*subjobs{}
		if q.Subjobs {
			if err := l.collectSubjobs(tx, page, rows); err != nil {
				return err
			}
		}
		l.copyRecords(out, page, rows)
		return nil
	})
	if err != nil && !errors.Is(err, errNoBatch) {
		out.Release()
		return nil, err
	}
	out.StartKey = l.cursor(next, scope)
	return out, nil
}

// Filter returns the filter for the store, without the batch, and the validation errors
// of the selection.
func (s Selection) Filter(by app.Caller) (f app.JobFilter, faults []fault.Field) {
	if s.ByCompletion && (s.Name != "" || s.Batch != "") {
		faults = append(faults, fault.Field{
			Loc: []any{"query", "sort"}, Type: "value",
			Msg: "omit sort with jobName or batch: these are listed in the order of submission",
		})
	}
	if s.Metric != "" && s.Batch == "" {
		faults = append(faults, fault.Field{
			Loc: []any{"query", "sort"}, Type: "value",
			Msg: "give batch as well: only the jobs of a batch can be sorted by a metric",
		})
	}
	f = app.JobFilter{
		Organization: by.Organization, Email: strings.ToLower(s.Email),
		Type: s.Algorithm, Name: s.Name, Tags: s.Tags, Search: naming.Fold(s.Search),
		From: s.Since, Until: s.Until, ByCompletion: s.ByCompletion, Ascending: s.Ascending, Metric: s.Metric,
		Statuses: distinct(s.Status),
	}
	if f.Email == "" && !s.WholeOrganization {
		f.Email = by.Email
	}
	return f, faults
}

// distinct returns the statuses in lifecycle order, without duplicates.
func distinct(asked []app.Status) (all []app.Status) {
	for _, status := range app.Statuses {
		if slices.Contains(asked, status) {
			all = append(all, status)
		}
	}
	return all
}

// scope returns the properties of a listing that its cursors are bound to. Filters added
// in later versions are only included if they are used, so that older cursors stay valid.
func (s Selection) scope(f app.JobFilter) []string {
	statuses := make([]string, len(f.Statuses))
	for i, status := range f.Statuses {
		statuses[i] = string(status)
	}
	scope := []string{"jobs", f.Organization, f.Email, f.Type, strings.Join(statuses, ","), f.Name, s.Batch}
	if text := laterScope(f); text != noLaterScope {
		scope = append(scope, text)
	}
	return scope
}

// laterScope returns the scope for filters that were added later.
func laterScope(f app.JobFilter) string {
	text := fmt.Sprintf("%q %q %v %v %t %t", f.Tags, f.Search, f.From, f.Until, f.ByCompletion, f.Ascending)
	if f.Metric != "" {
		text += fmt.Sprintf(" %q", f.Metric)
	}
	return text
}

var noLaterScope = laterScope(app.JobFilter{})

// readCursor returns the position in the cursor of a listing, or "" without a cursor. The
// error includes the known errors of the query as well as any error of the cursor.
func (l *Lists) readCursor(text string, known []fault.Field, scope []string) (app.Position, error) {
	if text == "" {
		return "", fault.List(known...)
	}
	position, err := l.cursors.ReadCursor(text, scope...)
	if err != nil && !(errors.Is(err, ErrListing) && otherListing(known)) {
		known = append(slices.Clone(known), fault.Field{
			Loc: []any{"query", "startKey"}, Type: "value",
			Msg: "this startKey belongs to another listing; use the one of the previous page with the same filters, or omit it",
		})
	}
	return app.Position(position), fault.List(known...)
}

// otherListing reports whether errors in a query leave unclear which listing was meant,
// so that the cursor can't be checked.
func otherListing(faults []fault.Field) bool {
	return slices.ContainsFunc(faults, func(f fault.Field) bool {
		return len(f.Loc) < 2 || !slices.Contains([]any{"limit", "includeSubjobs", "statuses", "count"}, f.Loc[1])
	})
}

// cursor returns the cursor for the page after a position, or "" if there is none.
func (l *Lists) cursor(next app.Position, scope []string) string {
	if next == "" {
		return ""
	}
	return l.cursors.MakeCursor(string(next), scope...)
}

// count restricts the filter to the batch and adds the requested counts.
func (q Query) count(tx app.Tx, f *app.JobFilter, out *Page) error {
	if q.Statuses {
		out.Statuses = &app.Counts{}
	}
	if q.Count {
		out.Count = &Count{}
	}
	batch, err := q.within(tx, f)
	if err != nil {
		return err
	}
	switch {
	case !q.Statuses:
	case batch != nil:
		out.Statuses = batch.Counts
	default:
		if *out.Statuses, err = tx.Statuses(f.Organization, f.Email); err != nil {
			return err
		}
	}
	switch {
	case !q.Count:
	case summed(*f):
		err = out.Count.sum(tx, *f)
	default:
		out.Count.Jobs, out.Count.More, err = tx.CountJobs(*f, maxCount)
	}
	return err
}

// errNoBatch means that the batch of a selection does not exist, so that it selects
// nothing.
var errNoBatch = errors.New("there is no such batch")

// within restricts a filter to the batch of the selection and returns the batch, or nil
// if none is selected.
func (s Selection) within(tx app.Tx, f *app.JobFilter) (*app.Job, error) {
	if s.Batch == "" {
		return nil, nil
	}
	batch, err := tx.JobNamed(f.Organization, s.Batch)
	if _, bad := sortid.Parse(s.Batch); errors.Is(err, fault.NotFound) && bad == nil {
		batch, err = tx.Job(app.JobID(s.Batch))
	}
	switch {
	case errors.Is(err, fault.NotFound):
		return nil, errNoBatch
	case err != nil:
		return nil, err
	case batch.Organization != f.Organization || !batch.IsBatch():
		return nil, errNoBatch
	}
	f.Batch = batch.ID
	return batch, nil
}

// Limits on the rows included with the batches of a page.
const (
	maxShownSubjobs  = 1000    // of one batch
	maxListedSubjobs = 5000    // of all batches of a page
	enoughSubjobs    = 6 << 20 // bytes after which no more rows are added
)

// subjobs holds the rows included in the record of a batch.
type subjobs struct {
	records   []app.Record
	truncated bool
}

// addTo adds the rows to the record of a batch. A nil s adds nothing.
func (s *subjobs) addTo(record app.Record) app.Record {
	if s == nil {
		return record
	}
	return strictjson.Append(strictjson.Append(record, "subjobs", s.records), "subjobsTruncated", s.truncated)
}

// collectSubjobs reads the rows of the batches on a page. It stops at 5,000 rows or
// several megabytes in total to limit the response.
func (l *Lists) collectSubjobs(tx app.Tx, page app.JobPage, of map[app.JobID]*subjobs) error {
	left, size := maxListedSubjobs, 0
	for _, j := range page.Jobs {
		var batch struct {
			Counts *app.Counts `json:"subjobCounts"`
		}
		if err := json.Unmarshal(j.JSON, &batch); err != nil {
			return err
		}
		if batch.Counts == nil {
			continue
		}
		rows, err := l.subjobsOf(tx, j.ID, min(maxShownSubjobs, left), &size)
		if err != nil {
			return err
		}
		of[j.ID] = rows
		left -= len(rows.records)
	}
	return nil
}

// subjobsOf reads up to limit rows of a batch and adds their bytes to size.
func (l *Lists) subjobsOf(tx app.Tx, batch app.JobID, limit int, size *int) (*subjobs, error) {
	rows := &subjobs{records: []app.Record{}}
	for sub, err := range tx.Subjobs(batch, "") {
		if err != nil {
			return nil, err
		}
		if len(rows.records) >= limit || *size >= enoughSubjobs {
			rows.truncated = true
			break
		}
		record, err := tx.JobJSON(sub.ID)
		if err != nil {
			return nil, err
		}
		*size += len(record)
		rows.records = append(rows.records, l.jobs.WithLiveState(app.StoredJob{ID: sub.ID, JSON: record}))
	}
	return rows, nil
}
