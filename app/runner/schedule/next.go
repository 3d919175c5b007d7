package schedule

import (
	"fmt"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/job/eta"
	"molrun/app/job/quota"
)

// Decision is the outcome of one scheduling round.
type Decision struct {
	Start      []StartDecision
	Impossible []Rejection
	Reasons    map[app.JobID]eta.Reason // why the other scanned jobs wait
}

// StartDecision is a job to start, with the slot assigned to it.
type StartDecision struct {
	ID app.JobID
	Lease
}

// Rejection is a job that can never start on the executor.
type Rejection struct {
	ID      app.JobID
	Message string // the reason, for the job's user
}

// Next decides which of the scanned jobs start now, at most limit of them, and takes
// their slots. The executor's name is used in messages.
func (t *FairShare) Next(now time.Time, executor string, s *Scan, limit int) Decision {
	if s.Deep {
		t.forgetAllBut(s.Waiting)
	}
	c := &choice{
		share:    t,
		decision: Decision{Reasons: map[app.JobID]eta.Reason{}},
		now:      now,
		limit:    limit,
		free:     t.slots.free(),
		reserved: t.reservation(now),
		first:    t.firstLimited(now),
	}
	possible := c.reject(executor, s.Waiting)
	for len(possible) > 0 {
		level, rest := cutLevel(possible)
		c.serve(linesOf(level))
		possible = rest
	}
	return c.decision
}

// choice is a decision in progress.
type choice struct {
	share    *FairShare
	decision Decision
	now      time.Time
	limit    int
	free     placement.Resources // before the first start
	reserved *app.Waiting
	skipped  []app.Waiting // jobs that did not fit when they were next
	first    map[quota.Holder]*limited
}

// reject filters out the jobs that can never start.
func (c *choice) reject(executor string, waiting []app.Waiting) []app.Waiting {
	var possible []app.Waiting
	for _, w := range waiting {
		lack := c.share.slots.never(w.Needs)
		if lack == (placement.Resources{}) {
			possible = append(possible, w)
			continue
		}
		delete(c.share.passed, w.ID)
		delete(c.share.limited, w.ID)
		message := fmt.Sprintf("The job needs %s, but executor %q has only %s in total. "+
			"Choose smaller settings, or ask an administrator for another executor.",
			amounts(lack), executor, amounts(only(c.share.slots.total(), lack)))
		c.decision.Impossible = append(c.decision.Impossible, Rejection{w.ID, message})
	}
	return possible
}

// serve starts jobs of one priority by fair share. The job holding the reservation goes
// first if it fits, because others were held back for it.
func (c *choice) serve(lines []*userQueue) {
	for _, l := range lines {
		c.serveReserved(l)
	}
	for {
		l := c.share.nextLine(lines)
		if l == nil {
			return
		}
		c.serveUser(l)
	}
}

func (c *choice) serveReserved(l *userQueue) {
	for i, w := range l.jobs {
		if c.reserved == nil || w.ID != c.reserved.ID || !c.fits(w) {
			continue
		}
		if _, held := c.limitedBy(w); held {
			continue
		}
		l.jobs = append(l.jobs[:i:i], l.jobs[i+1:]...)
		c.takeSlot(w)
		c.reserved = nil
		return
	}
}

// serveUser tries a user's jobs in order until one starts; then another user may be next.
func (c *choice) serveUser(l *userQueue) {
	for len(l.jobs) > 0 {
		w := l.jobs[0]
		l.jobs = l.jobs[1:]
		if h, held := c.limitedBy(w); held {
			c.recordLimited(w, h)
			continue
		}
		if c.fits(w) {
			c.takeSlot(w)
			return
		}
		if !c.share.mute {
			c.decision.Reasons[w.ID] = c.reason(w, w.ID != l.oldest)
		}
		c.skipped = append(c.skipped, w)
	}
}

func (c *choice) fits(w app.Waiting) bool {
	return len(c.decision.Start) < c.limit && c.share.slots.lacks(w.Needs, reservedFrom(w, c.reserved)) == (placement.Resources{})
}

// takeSlot takes a slot for w. The jobs skipped before it now count as passed over.
func (c *choice) takeSlot(w app.Waiting) {
	t, user := c.share, userOf(w)
	c.decision.Start = append(c.decision.Start, StartDecision{w.ID, Lease{user, w.Needs, t.slots.lease(w.Needs), w.Work}})
	t.running[user]++
	t.starts++
	t.started[user] = t.starts
	delete(t.passed, w.ID)
	delete(t.limited, w.ID)
	t.limits.addUse(user, w.Needs)
	for _, w := range c.skipped {
		if t.passed[w.ID] == nil {
			t.passed[w.ID] = &passedOver{Waiting: w, since: c.now}
		}
	}
	c.skipped = c.skipped[:0]
}

// reason returns why w does not start now; behind means that other jobs of its user are
// ahead of it.
func (c *choice) reason(w app.Waiting, behind bool) eta.Reason {
	lack := c.share.slots.lacks(w.Needs, placement.Resources{})
	switch {
	case len(c.decision.Start) >= c.limit:
		return eta.NotTurnYet(behind)
	case c.share.slots.lacksGPUs(w.Needs):
		return eta.Reason{Text: c.share.slots.whyNoGPUs(w.Needs), By: eta.GPU}
	case c.reserved != nil && w.ID == c.reserved.ID:
		return eta.Reason{Text: "reserved: next to start, waiting for " + amounts(lack), By: blocker(lack)}
	case lack == (placement.Resources{}):
		kept := c.share.slots.lacks(w.Needs, reservedFrom(w, c.reserved))
		return eta.Reason{Text: "free resources are reserved for a job that has waited longer", By: blocker(kept)}
	case short(c.free, w.Needs) != (placement.Resources{}):
		return eta.Reason{Text: "waiting for " + amounts(lack), By: blocker(lack)}
	}
	return eta.NotTurnYet(behind)
}

// whyNoGPUs returns why a job waits for GPUs that can't be assigned now.
func (s *slots) whyNoGPUs(needs placement.Resources) string {
	text := "waiting for " + amounts(placement.Resources{GPUs: needs.GPUs})
	if s.capacity.GPUsUnknown {
		return text + ": GPU detection has not finished yet"
	}
	var faulty []string
	for _, g := range s.capacity.FaultyGPUs {
		if g.Expected() {
			faulty = append(faulty, g.Name+" "+g.Text)
		}
	}
	return fmt.Sprintf("%s: %d of %d can be used now; %s", text, len(s.capacity.GPUs), s.total().GPUs, strings.Join(faulty, "; "))
}

// blocker returns the scarcest resource that a job is waiting for.
func blocker(lack placement.Resources) eta.Blocker {
	switch {
	case lack.GPUs > 0:
		return eta.GPU
	case lack.CPUs > 0:
		return eta.CPU
	case lack.MemoryBytes > 0:
		return eta.Memory
	}
	return ""
}
