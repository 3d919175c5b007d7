package simulation

import (
	"context"
	"fmt"
	"time"

	"molrun/app"
	"molrun/app/retention"
)

// rules are what retention keeps: little, so that there is something to delete.
var rules = retention.Rules{Completed: 20 * time.Minute, Failed: 5 * time.Minute}

// clearance is a request of the operator that deletes finished jobs, many
// records one after the other: a prune, or a pass of retention.
type clearance struct {
	before time.Time          // of a prune: only what ended before
	failed bool               // of a prune: only failed ones
	due    map[app.JobID]bool // what has to be gone at its end
	latest time.Time          // that clocks have shown since it was sent
	doubt  bool               // retention does not trust the clock
}

// prune has the operator delete what ended some time ago.
func (s *simulation) prune() {
	ago, failed := seconds(s.rng, 300), s.rng.IntN(3) == 0
	s.clear("prune", &clearance{before: s.wall().Add(-ago), failed: failed})
}

// retain has the service delete what its rules no longer keep. It does so every
// hour and never twice at once.
func (s *simulation) retain() {
	for _, r := range s.requests {
		if r.label.verb == "retain" {
			return
		}
	}
	s.clear("retain", &clearance{})
}

func (s *simulation) clear(verb string, c *clearance) {
	s.up()
	if s.process == nil {
		return
	}
	c.latest, c.due = s.wall(), map[app.JobID]bool{}
	for _, e := range s.ledger.sorted(s.mayGo) {
		c.due[e.ID] = c.old(verb, e)
	}
	s.send(&request{label: label{verb: verb}, clearance: c})
}

// mayGo reports whether a job or a whole batch may be deleted, however old.
func (s *simulation) mayGo(e *entry) bool { return e.Private.Batch == "" && s.keptBy(e) == "" }

// keptBy says what keeps a job or a whole batch from being deleted by itself.
func (s *simulation) keptBy(e *entry) string {
	for _, row := range s.ledger.withRows(e) {
		switch {
		case !row.Status.Finished():
			return "is not over"
		case row.Pinned:
			return "is pinned"
		case s.ledger.needed(row.ID):
			return "is read by another"
		}
	}
	return ""
}

// old reports whether a finished job is old enough to be deleted.
func (c *clearance) old(verb string, e *entry) bool {
	switch {
	case verb == "prune":
		return e.CompletedAt.Before(c.before) && (e.Status == app.Failed || !c.failed)
	case e.Status == app.Failed:
		return e.CompletedAt.Before(c.latest.Add(-rules.Failed))
	}
	return e.CompletedAt.Before(c.latest.Add(-rules.Completed))
}

func (c *clearance) call(ctx context.Context, verb string, p *process) error {
	if verb == "retain" {
		retained, err := p.Retention.Run(ctx, func(app.Expired) {})
		c.doubt = retained.Doubt
		return err
	}
	for after := (*retention.PrunePosition)(nil); ; {
		page, err := p.Retention.Prune(ctx, retention.PruneRequest{EndedBefore: c.before, Failed: c.failed, After: after})
		if err != nil || page.Next == nil {
			return err
		}
		after = page.Next
	}
}

// judgeCleared says what is wrong with a job that was deleted by itself.
func (s *simulation) judgeCleared(c *change, old *entry) error {
	whole, r := old, s.requests[c.label]
	if old.Private.Batch != "" {
		whole = s.ledger.jobs[old.Private.Batch]
	}
	if why := s.keptBy(whole); why != "" {
		return fmt.Errorf("it is deleted by itself, and %s %s", whole.Name, why)
	}
	if r == nil || !r.clearance.old(c.label.verb, whole) {
		return fmt.Errorf("it is deleted by itself, and %s ended only at %v", whole.Name, whole.CompletedAt)
	}
	for _, row := range s.ledger.withRows(whole) {
		if c.of(row.ID) == nil {
			return fmt.Errorf("it is deleted by itself, and %s is not", row.Name)
		}
	}
	return nil
}

// of gives what the change did to a job, nil where it did nothing.
func (c *change) of(id app.JobID) *jobChange {
	for _, j := range c.jobs {
		if j.id == id {
			return j
		}
	}
	return nil
}

// meddle notes that others have changed what a clearance has to delete, or
// need it: then it may stay.
func (s *simulation) meddle(c *change) {
	for _, r := range s.requests {
		if r.clearance == nil || r.label == c.label {
			continue
		}
		for _, j := range c.jobs {
			delete(r.clearance.due, j.id)
			if j.now == nil {
				continue
			}
			delete(r.clearance.due, j.now.Private.Batch)
			r.clearance.spare(s, sourceOf(&j.now.Job))
		}
	}
}

// spare takes a job, with the batch that it is of, from what has to go.
func (c *clearance) spare(s *simulation, id app.JobID) {
	delete(c.due, id)
	if e := s.ledger.jobs[id]; e != nil {
		delete(c.due, e.Private.Batch)
	}
}

// leap tells the requests that clocks were set: nobody can say any more what
// retention has to delete.
func (s *simulation) leap() {
	for _, r := range s.requests {
		if c := r.clearance; c != nil && r.label.verb == "retain" {
			clear(c.due)
			if now := s.wall(); now.After(c.latest) {
				c.latest = now
			}
		}
	}
}

// judgeClearance looks at what a clearance has left.
func (s *simulation) judgeClearance(r *request) {
	switch c := r.clearance; {
	case r.have.code != "" && !s.fullSince(r.sent):
		s.complain("%s: answered %s", r.label, r.have.code)
	case r.have.code != "" || c.doubt:
	default:
		for _, e := range s.ledger.sorted(func(e *entry) bool { return c.due[e.ID] }) {
			s.complain("%s: %s is still there", r.label, e.Name)
		}
	}
}

// judgePin looks whether a pin changed just that.
func judgePin(c *change, old *entry, now *stored) error {
	if now.Pinned != (c.label.verb == "pin") {
		return fmt.Errorf("after a %s it is pinned: %v", c.label.verb, now.Pinned)
	}
	same := now.Job
	same.Pinned, same.Private.PinnedBy, same.Private.PinnedAt = old.Pinned, old.Private.PinnedBy, old.Private.PinnedAt
	before, err := asStored(&same)
	if err != nil {
		return err
	}
	return allow(before.shown == old.shown && before.private == old.private, "more changes than its pin")
}
