package simulation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/job/listing"
	"molrun/storage"
)

// ledger is the expected content of the store: every job as last committed, with
// additional data.
type ledger struct {
	jobs    map[app.JobID]*entry
	highest app.JobID // the highest job ID so far
	tokens  map[string]bool
}

type entry struct {
	*stored
	submission *submission // the submission that created the job or its batch

	// When it was submitted and when it was canceled, on a clock that never jumps.
	submittedAt, stopped time.Time

	waitsSince time.Time // when it entered the queue
}

func newLedger() *ledger {
	return &ledger{jobs: map[app.JobID]*entry{}, tokens: map[string]bool{}}
}

// named returns the job with the given name, or nil if there is none.
func (l *ledger) named(organization, name string) *entry {
	for _, e := range l.jobs {
		if e.Organization == organization && e.Name == name {
			return e
		}
	}
	return nil
}

// sorted returns the jobs for which fits returns true, oldest first.
func (l *ledger) sorted(fits func(*entry) bool) []*entry {
	var all []*entry
	for _, e := range l.jobs {
		if fits(e) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

func (l *ledger) rows(batch app.JobID) []*entry {
	return l.sorted(func(e *entry) bool { return e.Private.Batch == batch })
}

// withRows returns a job and, if it is a batch, the batch's jobs.
func (l *ledger) withRows(e *entry) []*entry {
	if !e.IsBatch() {
		return []*entry{e}
	}
	return append([]*entry{e}, l.rows(e.ID)...)
}

// waits reports whether the job is in the queue.
func (e *entry) waits() bool {
	return e.Status == app.Queued && !e.Private.Claimed && !e.IsBatch() && len(e.Private.Waits) == 0
}

// needed reports whether an unfinished job reads the result of the given job.
func (l *ledger) needed(id app.JobID) bool {
	for _, e := range l.jobs {
		for _, src := range e.Private.References {
			if src.Job == id && !e.Status.Finished() {
				return true
			}
		}
	}
	return false
}

// compare compares the store with the ledger. The database must be consistent and contain
// exactly these jobs, byte for byte.
func (l *ledger) compare(store *storage.Store) error {
	ctx := context.Background()
	if err := store.Check(ctx); err != nil {
		return err
	}
	return store.View(ctx, func(tx app.Tx) error {
		have := 0
		for _, organization := range organizations {
			page, err := tx.Jobs(app.JobFilter{Organization: organization}, "", 1000)
			if err != nil {
				return err
			}
			have += len(page.Jobs)
		}
		for _, e := range l.sorted(func(*entry) bool { return true }) {
			if err := e.compare(tx); err != nil {
				return err
			}
			if e.Private.Batch != "" {
				have++
			}
		}
		if have != len(l.jobs) {
			return fmt.Errorf("the store has %d jobs, but %d were committed", have, len(l.jobs))
		}
		return nil
	})
}

func (e *entry) compare(tx app.Tx) error {
	j, err := tx.JobNamed(e.Organization, e.Name)
	if err != nil {
		return fmt.Errorf("a committed job is lost: %w", err)
	}
	shown, err := tx.JobJSON(e.ID)
	if err != nil {
		return err
	}
	private, err := json.Marshal(&j.Private)
	switch {
	case err != nil:
		return err
	case j.ID != e.ID || string(shown) != e.shown || string(private) != e.private:
		return fmt.Errorf("%s is stored as\n%s %s\nbut was committed as\n%s %s", e.Name, shown, private, e.shown, e.private)
	}
	return nil
}

// compareListings compares what users see with the ledger. Every job must be found by
// name and in listings, as committed.
func (l *ledger) compareListings(p *process) error {
	ctx := context.Background()
	for _, by := range admins {
		listed := map[string]bool{}
		for start := ""; ; {
			page, err := p.Lists.Jobs(ctx, by, listing.Query{Selection: listing.Selection{WholeOrganization: true}, Subjobs: true, Limit: 7, StartKey: start})
			if err != nil {
				return err
			}
			for _, rec := range page.Records {
				if err := l.noteListed(by, rec, listed); err != nil {
					return err
				}
			}
			if start = page.StartKey; start == "" {
				break
			}
		}
		for _, e := range l.sorted(func(e *entry) bool { return e.Organization == by.Organization }) {
			rec, err := p.Jobs.Get(ctx, by, e.Name, 0)
			if err != nil {
				return err
			}
			if err := e.shownAs(rec); err != nil {
				return err
			}
			delete(listed, e.Name)
		}
		for name := range maps.Keys(listed) {
			return fmt.Errorf("%s is listed, but does not exist", name)
		}
	}
	return nil
}

// noteListed checks and records a listed job and, if it is a batch, its jobs.
func (l *ledger) noteListed(by app.Caller, rec app.Record, listed map[string]bool) error {
	var r struct {
		app.Job
		Subjobs []app.Job `json:"subjobs"`
	}
	if err := json.Unmarshal(rec, &r); err != nil {
		return err
	}
	for _, j := range append(r.Subjobs, r.Job) {
		if listed[j.Name] {
			return fmt.Errorf("%s is listed twice", j.Name)
		}
		listed[j.Name] = true
	}
	e := l.named(by.Organization, r.Name)
	if e == nil || len(l.withRows(e)) != 1+len(r.Subjobs) {
		return fmt.Errorf("%s is listed with %d rows, want a different number", r.Name, len(r.Subjobs))
	}
	return nil
}

// shownAs compares a record that a user sees with the committed one. It ignores progress
// and the reasons for waiting, which are live state and not stored.
func (e *entry) shownAs(rec app.Record) error {
	if string(rec) == e.shown {
		return nil
	}
	var have app.Job
	if err := json.Unmarshal(rec, &have); err != nil {
		return err
	}
	if have.StatusReason != e.StatusReason && e.Status == app.Queued && e.StatusReason == "" {
		have.StatusReason = ""
	}
	shown, err := have.Encode()
	if err == nil && string(shown) != e.shown {
		err = fmt.Errorf("%s is shown as\n%s\nbut was committed as\n%s", e.Name, shown, e.shown)
	}
	return err
}
