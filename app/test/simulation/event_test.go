package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"molrun/app"
	"molrun/app/base/events"
)

// expectedEvent is an event that listeners must receive.
type expectedEvent struct {
	kind       app.EventKind
	job, batch app.JobID // batch is set for jobs of a batch
	name       string
	email      string
	status     app.Status
	was        app.Status // previous status, if it changed
	minor      bool       // superseded by a later minor event in the same group about the same job
	id         events.ID  // position in the store
}

func (t *expectedEvent) String() string {
	if t == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s of %s, %s after %q", t.kind, t.name, t.status, t.was)
}

// history contains the expected events of each organization, which must equal the content
// of the store's ring.
type history map[string][]*expectedEvent

// beginGroup records where the events of a group of commits begin. The store writes such
// a group at once.
func (s *simulation) beginGroup() {
	s.groupFrom = map[string]int{}
	for organization, all := range s.history {
		s.groupFrom[organization] = len(all)
	}
}

// addExpectedEvents adds the events of a commit before the commit is applied to the
// ledger. Their positions are not known yet.
func (s *simulation) addExpectedEvents(c *change) {
	old := func(id app.JobID) *app.Job {
		if e := s.ledger.jobs[id]; e != nil {
			return &e.Job
		}
		return nil
	}
	now := map[app.JobID]*app.Job{}
	for _, put := range c.puts {
		before, known := now[put.id]
		if !known {
			before = old(put.id)
		}
		now[put.id] = nil
		if put.now != nil {
			now[put.id] = &put.now.Job
		}
		if put.now == nil && before != nil && before.Private.Batch != "" {
			batch, changed := now[before.Private.Batch]
			if changed && batch == nil {
				continue // deleted together with its batch
			}
		}
		if before == nil && put.now == nil {
			continue // judge reports the error
		}
		s.add(before, now[put.id])
		s.promise(before, now[put.id])
	}
}

// add adds the events for one change of a job.
func (s *simulation) add(before, now *app.Job) {
	if now == nil {
		s.addEvent(newTold(app.EventJobDeleted, before))
		return
	}
	e := newTold(app.EventJobChanged, now)
	switch {
	case before == nil && now.Private.Batch != "":
		return // the batch's event covers it
	case before == nil:
	case before.Status != now.Status:
		e.was = before.Status
		if before.Status == app.Queued && now.Status.Finished() && now.Private.Batch == "" && !now.StartedAt.Equal(before.StartedAt.Time) {
			begun := newTold(app.EventJobChanged, now) // the start was recorded together with the end
			begun.status, begun.was = app.Running, app.Queued
			s.addEvent(begun)
			e.was = app.Running
		}
		if now.Status.Finished() && !before.Status.Finished() && now.Metrics != nil {
			s.addEvent(newTold(app.EventMetrics, now))
		}
	case before.StatusReason != now.StatusReason || before.Pinned != now.Pinned:
	case now.IsBatch() && *before.Counts != *now.Counts:
		e.minor = true
	default:
		return
	}
	s.addEvent(e)
}

func newTold(kind app.EventKind, j *app.Job) *expectedEvent {
	return &expectedEvent{kind: kind, job: j.ID, batch: j.Private.Batch, name: j.Name, email: j.Email, status: j.Status}
}

// addEvent adds an event to the current group.
func (s *simulation) addEvent(e *expectedEvent) {
	organization := organizationOf(e.email)
	all := s.history[organization]
	if e.minor {
		first := s.groupFrom[organization]
		all = slices.Concat(all[:first], slices.DeleteFunc(slices.Clone(all[first:]), func(o *expectedEvent) bool { return o.minor && o.job == e.job }))
	}
	s.history[organization] = append(all, e)
}

func organizationOf(email string) string {
	for _, by := range users {
		if by.Email == email {
			return by.Organization
		}
	}
	return ""
}

// checkEvents compares the events that the store has written since the last commit with
// the expected ones, and records their positions.
func (s *simulation) checkEvents() {
	for _, organization := range organizations {
		all := s.history[organization]
		first := slices.IndexFunc(all, func(e *expectedEvent) bool { return e.id == events.ID{} })
		if first < 0 {
			first = len(all)
		}
		s.compareEvents(organization, first)
	}
}

// compareEvents compares the ring of an organization with its history, starting at event
// number from.
func (s *simulation) compareEvents(organization string, from int) {
	place := events.ID{}
	if from > 0 {
		place = s.history[organization][from-1].id
	}
	var ring []events.Entry
	known := false
	err := s.process.store.View(context.Background(), func(tx app.Tx) (err error) {
		ring, known, err = tx.EventsAfter(organization, place, 1<<20)
		return err
	})
	if err != nil || !known {
		s.faultf("the events of %s behind number %d can't be read: %v", organization, place.Number, err)
		return
	}
	all := s.history[organization][from:]
	for i := range max(len(all), len(ring)) {
		var want *expectedEvent
		if i < len(all) {
			want = all[i]
		}
		if i >= len(ring) {
			s.faultf("event %d of %s is lost, want %s", from+i+1, organization, want)
			return
		}
		if err := want.matches(ring[i], from+i+1); err != nil {
			s.faultf("event %d of %s: %v", from+i+1, organization, err)
			return
		}
		want.id = ring[i].ID
	}
}

// matches compares an event from the store with the expected one.
func (t *expectedEvent) matches(entry events.Entry, number int) error {
	e, err := app.DecodeEvent(entry)
	if err != nil {
		return err
	}
	switch {
	case t == nil:
		return fmt.Errorf("the store has %s of %s, want nothing", e.Kind, e.Job.Name)
	case entry.ID.Number != uint64(number) || t.id != events.ID{} && t.id != entry.ID:
		return fmt.Errorf("it has the place %v, want %v", entry.ID, t.id)
	}
	return t.matchesSent(string(e.Kind), e.Data)
}

// matchesSent compares an event as sent to a client with the expected one.
func (t *expectedEvent) matchesSent(kind string, data json.RawMessage) error {
	var seen struct {
		app.Job
		Was app.Status `json:"previousStatus"`
	}
	if err := json.Unmarshal(data, &seen); err != nil {
		return err
	}
	same := kind == string(t.kind) && seen.ID == t.job && seen.Name == t.name && seen.Was == t.was
	if same && t.kind == app.EventJobChanged {
		same = seen.Status == t.status
	}
	return allow(same, fmt.Sprintf("%s of %s, %s after %q is told, want %s", kind, seen.Name, seen.Status, seen.Was, t))
}
