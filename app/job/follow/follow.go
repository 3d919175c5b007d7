// Package follow streams events of jobs: of one job, or of all jobs that a client selects
// as in a listing.
//
// A stream starts at a position in the events of an organization and misses none after
// that: it takes them from the hub's memory if they are there, and otherwise from the
// store. If they are no longer available, or the streams together exceed their budget,
// the stream sends "reset": the client must then list the jobs again, and the stream
// continues from the present. Progress is not stored; a stream sends the latest.
package follow

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"molrun/app"
	"molrun/app/base/events"
	"molrun/app/base/fault"
	"molrun/app/job/access"
	"molrun/app/job/listing"
)

// Follower opens streams.
type Follower struct {
	store    app.Store
	feed     eventFeed
	jobs     *app.Jobs
	accounts *access.Accounts
	budget   *rate.Limiter // for the events of all streams
	open     atomic.Int64
}

// New returns the follower of a service. It must be called before the service is used.
func New(store app.Store, svc *app.Service, accounts *access.Accounts) *Follower {
	f := &Follower{store: store, jobs: svc.Jobs, accounts: accounts, budget: newBudget()}
	store.OnEvents(f.feed.Publish)
	svc.Runs.OnProgress(f.feed.Progress)
	accounts.OnChange(f.feed.WakeAll)
	return f
}

// OpenStreams returns the number of open streams.
func (f *Follower) OpenStreams() int { return int(f.open.Load()) }

// Query selects jobs and the position after which their events start; nil means the
// present.
type Query struct {
	listing.Selection
	After  *Position
	Faults []fault.Field // found during decoding
}

// Jobs opens a stream of the events of those jobs that the query selects before or after
// the change.
func (f *Follower) Jobs(ctx context.Context, by app.Caller, q Query) (*Stream, error) {
	filter, faults := q.Filter(by)
	if err := fault.List(slices.Concat(q.Faults, faults)...); err != nil {
		return nil, err
	}
	s := f.stream(by, topicOf(q.Batch, filter))
	s.selects = func(e *app.Event) bool {
		return within(q.Batch, filter.Name, e.Job) && (filter.Selects(e.Job) || e.Was != nil && filter.Selects(e.Was))
	}
	err := f.store.View(ctx, func(tx app.Tx) error { return s.findStart(tx, q.After) })
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// topicOf returns the narrowest topic that covers all jobs of a filter.
func topicOf(batch string, f app.JobFilter) events.Topic {
	switch {
	case batch != "":
		return events.Topic{Kind: app.TopicBatch, Of: batch}
	case f.Name != "":
		return events.Topic{Kind: app.TopicName, Of: f.Name}
	case f.Email != "":
		return events.Topic{Kind: app.TopicUser, Of: f.Email}
	}
	return events.Topic{Kind: app.TopicAll}
}

// within reports whether a job is the batch with that name or ID, or one of its rows.
// Without a batch, rows are selected only by name.
func within(batch, name string, j *app.Job) bool {
	switch row := j.Private.Batch; {
	case batch == "":
		return row == "" || name != ""
	case row != "":
		return j.Batch == batch || string(row) == batch
	}
	return j.IsBatch() && (j.Name == batch || string(j.ID) == batch)
}

// JobQuery names a job. Logs also requests the output of its program.
type JobQuery struct {
	Name  string
	Logs  bool
	After *Position
}

// Job opens a stream of one job. It starts with the current state of the job, or after a
// position, and ends when the job has finished.
func (f *Follower) Job(ctx context.Context, by app.Caller, q JobQuery) (s *Stream, err error) {
	s = f.stream(by, events.Topic{Kind: app.TopicName, Of: q.Name})
	s.selects = func(e *app.Event) bool { return e.Job.ID == s.job.ID }
	err = f.store.View(ctx, func(tx app.Tx) error {
		j, err := f.jobs.FindJob(tx, by, q.Name)
		if err != nil {
			return err
		}
		s.job = j.Summary()
		if q.Logs && !j.IsBatch() {
			s.log = newLog(f.jobs, by, j)
		}
		if err := s.findStart(tx, q.After); err != nil || s.behind {
			return err
		}
		s.ready = append(s.ready, s.present(j)...)
		return nil
	})
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// stream returns a stream that listens but has no position yet.
func (f *Follower) stream(by app.Caller, about events.Topic) *Stream {
	f.open.Add(1)
	return &Stream{follower: f, by: by, listener: f.feed.Listen(by.Organization, about), timer: time.NewTimer(0), more: true}
}

// findStart determines where the stream starts. The listener receives everything
// committed later.
func (s *Stream) findStart(tx app.Tx, after *Position) (err error) {
	s.place, err = tx.LastEvent(s.by.Organization)
	if after == nil || err != nil {
		return err
	}
	_, known, err := tx.EventsAfter(s.by.Organization, after.Event, 0)
	switch {
	case err != nil:
		return err
	case known && s.follower.takeBudget((s.place.Number-after.Event.Number)/perPlace):
		s.place, s.behind = after.Event, true
		if s.log != nil {
			s.log.resume(after)
		}
	default:
		s.ready = append(s.ready, resetMessage("The events since then are no longer available."))
		if s.job == nil {
			s.ready[0] = s.stamp(s.ready[0])
		}
	}
	return nil
}

// Position is where a client left a stream: after an event and, if the stream includes
// the log, at an offset in the log of an attempt.
type Position struct {
	Event   events.ID
	Attempt int
	Offset  int64
}

// ParsePlace parses a message ID.
func ParsePlace(text string) (p Position, err error) {
	event, log, hasLog := strings.Cut(text, ".")
	if p.Event, err = events.ParseID(event); err != nil || !hasLog {
		return p, err
	}
	p.Attempt, p.Offset, err = parseLogPlace(log)
	return p, err
}
