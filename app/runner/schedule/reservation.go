package schedule

import (
	"maps"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
)

// passedOver is a job that did not fit when it was next, while another started instead.
type passedOver struct {
	app.Waiting
	since time.Time
}

// reservation returns the job for which freed resources are reserved: among the jobs
// passed over for too long, the one with the highest priority, then the one that has
// waited longest. This does not depend on what runs, so that a job keeps its reservation
// until it has started, nor on the depth of a scan, so that a job keeps it even if other
// jobs of its user are ahead of it. A job has no reservation while a limit holds it up,
// because it could not start, nor while too few usable GPUs exist for it.
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

// reservedFrom returns the resources that w must leave free. A reservation binds all jobs
// except its own and those of a higher priority.
func reservedFrom(w app.Waiting, reserved *app.Waiting) placement.Resources {
	if reserved == nil || w.ID == reserved.ID || w.Priority > reserved.Priority {
		return placement.Resources{}
	}
	return reserved.Needs
}

// forgetAllBut drops jobs that no longer wait. The wait of a canceled and retried job
// starts again.
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
