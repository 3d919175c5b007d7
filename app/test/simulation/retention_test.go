package simulation

import (
	"context"
	"fmt"
	"time"

	"molrun/app"
	"molrun/app/job/retention"
)

// rules are the retention rules, which are short so that jobs expire.
var rules = retention.Rules{Completed: 20 * time.Minute, Failed: 5 * time.Minute}

// purge is a request that deletes many finished jobs: a prune by an administrator or a
// retention run.
type purge struct {
	before time.Time             // for prune: delete only jobs that ended before this time
	failed bool                  // for prune: delete only failed jobs
	due    map[app.JobID]bool    // jobs that must be deleted by the end
	parts  map[app.UploadID]bool // partial uploads that must be deleted by the end
	latest time.Time             // latest wall-clock time since the request was sent
	doubt  bool                  // retention distrusted the clock
}

// prune has an administrator delete jobs that ended some time ago.
func (s *simulation) prune() {
	ago, failed := seconds(s.rng, 300), s.rng.IntN(3) == 0
	s.sendPurge("prune", &purge{before: s.wall().Add(-ago), failed: failed})
}

// retain has the service delete expired jobs, as it does every hour. Retention runs never
// overlap.
func (s *simulation) retain() {
	for _, r := range s.requests {
		if r.label.verb == "retain" {
			return
		}
	}
	s.sendPurge("retain", &purge{})
}

func (s *simulation) sendPurge(verb string, c *purge) {
	s.up()
	if s.process == nil {
		return
	}
	c.latest, c.due, c.parts = s.wall(), map[app.JobID]bool{}, map[app.UploadID]bool{}
	for id, u := range s.uploads {
		c.parts[id] = verb == "retain" && u.Partial != nil && u.Partial.ReceivedAt.Before(c.latest.Add(-partialFor))
	}
	for _, e := range s.ledger.sorted(s.mayDelete) {
		c.due[e.ID] = c.old(verb, e)
	}
	s.send(&request{label: label{verb: verb}, purge: c})
}

// mayDelete reports whether a job or a whole batch may be deleted, regardless of its age.
func (s *simulation) mayDelete(e *entry) bool { return e.Private.Batch == "" && s.keptBy(e) == "" }

// keptBy returns the reason why retention must keep a job or a whole batch, or "" if
// there is none.
func (s *simulation) keptBy(e *entry) string {
	for _, row := range s.ledger.withRows(e) {
		switch {
		case !row.Status.Finished():
			return "is not finished"
		case row.Pinned:
			return "is pinned"
		case s.ledger.needed(row.ID):
			return "is read by another job"
		case s.ledger.awaited(row.ID) || row.Private.Unpropagated:
			return "is awaited by another job"
		}
	}
	return ""
}

// old reports whether a finished job is old enough to be deleted.
func (c *purge) old(verb string, e *entry) bool {
	switch {
	case verb == "prune":
		return e.CompletedAt.Before(c.before) && (e.Status == app.Failed || !c.failed)
	case e.Status == app.Failed:
		return e.CompletedAt.Before(c.latest.Add(-rules.Failed))
	}
	return e.CompletedAt.Before(c.latest.Add(-rules.Completed))
}

func (c *purge) call(ctx context.Context, verb string, p *process) error {
	if verb == "retain" {
		retained, err := p.Retention.DeleteExpired(ctx, func(app.Expired) {})
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

// judgePurged checks the deletion of a job by a prune or by retention.
func (s *simulation) judgePurged(c *change, old *entry) error {
	whole, r := old, s.requests[c.label]
	if old.Private.Batch != "" {
		whole = s.ledger.jobs[old.Private.Batch]
	}
	if why := s.keptBy(whole); why != "" {
		return fmt.Errorf("it is deleted, but %s %s", whole.Name, why)
	}
	if r != nil && s.wall().After(r.purge.latest) {
		r.purge.latest = s.wall()
	}
	if r == nil || !r.purge.old(c.label.verb, whole) {
		return fmt.Errorf("it is deleted too early: %s ended at %v", whole.Name, whole.CompletedAt)
	}
	for _, row := range s.ledger.withRows(whole) {
		if c.of(row.ID) == nil {
			return fmt.Errorf("it is deleted, but %s is not", row.Name)
		}
	}
	return nil
}

// of returns the change of the given job, or nil if there is none.
func (c *change) of(id app.JobID) *jobChange {
	for _, j := range c.jobs {
		if j.id == id {
			return j
		}
	}
	return nil
}

// excuseChanged exempts jobs from a purge if other requests have changed them or need
// them.
func (s *simulation) excuseChanged(c *change) {
	for _, r := range s.requests {
		if r.purge == nil || r.label == c.label {
			continue
		}
		for _, j := range c.jobs {
			delete(r.purge.due, j.id)
			if j.now == nil {
				continue
			}
			delete(r.purge.due, j.now.Private.Batch)
			r.purge.exempt(s, sourceOf(&j.now.Job))
			for _, w := range j.now.Private.Waits {
				r.purge.exempt(s, w.Job)
			}
		}
	}
}

// exempt removes a job and its batch from the jobs that must be deleted.
func (c *purge) exempt(s *simulation, id app.JobID) {
	delete(c.due, id)
	if e := s.ledger.jobs[id]; e != nil {
		delete(c.due, e.Private.Batch)
	}
}

// clockJumped records a clock jump, after which it is unknown which jobs retention must
// delete.
func (s *simulation) clockJumped() {
	for _, r := range s.requests {
		if c := r.purge; c != nil && r.label.verb == "retain" {
			clear(c.due)
			clear(c.parts)
			if now := s.wall(); now.After(c.latest) {
				c.latest = now
			}
		}
	}
}

// judgePurge checks that every due job was deleted.
func (s *simulation) judgePurge(r *request) {
	switch c := r.purge; {
	case r.have.code != "" && !s.fullSince(r.sent):
		s.faultf("%s: answered %s", r.label, r.have.code)
	case r.have.code != "" || c.doubt:
	default:
		for _, e := range s.ledger.sorted(func(e *entry) bool { return c.due[e.ID] }) {
			s.faultf("%s: %s is still there", r.label, e.Name)
		}
		for _, u := range s.sortedUploads(func(u *app.Upload) bool { return c.parts[u.ID] && u.Partial != nil }) {
			s.faultf("%s: what has arrived of %s is still there", r.label, u.Filename)
		}
	}
}

// pins reports whether a change is due to a user's request to pin or unpin the job.
func (s *simulation) pins(c *change, old *entry, j *jobChange) bool {
	r := s.requests[c.label]
	return r != nil && (r.label.verb == "pin" || r.label.verb == "unpin") && old != nil && j.now != nil &&
		old.Organization == r.by.Organization && old.Name == r.name
}

// pinnedAs returns the pinned or unpinned job, after checking that nothing else has
// changed.
func pinnedAs(c *change, old *entry, now *stored) (*entry, error) {
	if now.Pinned != (c.label.verb == "pin") {
		return nil, fmt.Errorf("after %s, pinned is %v", c.label.verb, now.Pinned)
	}
	same := old.Job
	same.Pinned, same.Private.PinnedBy, same.Private.PinnedAt = now.Pinned, now.Private.PinnedBy, now.Private.PinnedAt
	pinned, err := asStored(&same)
	return &entry{stored: pinned}, err
}
