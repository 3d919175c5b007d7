package schedule

import (
	"maps"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
)

// passedOver is a job that did not fit when it was next, while another
// started in its place.
type passedOver struct {
	app.Waiting
	since time.Time
}

// reservation returns the job that what becomes free is reserved for: of those
// passed over for too long the one of the highest priority, then the one that
// has waited longest. This does not depend on what runs, so that a reservation
// stays with its job until that has started, nor on how deep a scan looks, so
// that a job keeps it even if it stands behind others of its user. Only a job that a
// limit holds up has none in the meantime: it could not start.
func (t *FairShare) reservation(now time.Time) *app.Waiting {
	var first *passedOver
	for _, p := range t.passed {
		if now.Sub(p.since) < t.reserveAfter || first != nil && !p.before(first) {
			continue
		}
		if _, held := t.limits.exceeded(p.Waiting, keptNothing); !held && !t.slots.lacksGPUs(p.Needs) {
			first = p
		}
	}
	if first == nil {
		return nil
	}
	return &first.Waiting
}

func (p *passedOver) before(q *passedOver) bool {
	if p.Priority != q.Priority {
		return p.Priority > q.Priority
	}
	if !p.since.Equal(q.since) {
		return p.since.Before(q.since)
	}
	return p.ID < q.ID
}

// reservedFrom returns what w must leave free. A reservation binds all jobs but
// its own and those of a higher priority.
func reservedFrom(w app.Waiting, reserved *app.Waiting) placement.Resources {
	if reserved == nil || w.ID == reserved.ID || w.Priority > reserved.Priority {
		return placement.Resources{}
	}
	return reserved.Needs
}

// forgetAllBut forgets jobs that no longer wait. A job that is cancelled and
// retried starts to wait again.
func (t *FairShare) forgetAllBut(waiting []app.Waiting) {
	if len(t.passed)+len(t.limited) == 0 {
		return
	}
	waits := make(map[app.JobID]bool, len(waiting))
	for _, w := range waiting {
		waits[w.ID] = true
	}
	maps.DeleteFunc(t.passed, func(id app.JobID, _ *passedOver) bool { return !waits[id] })
	maps.DeleteFunc(t.limited, func(id app.JobID, _ *limited) bool { return !waits[id] })
}
