package runner

import (
	"time"

	"molrun/app"
	"molrun/app/placement"
)

// choice is one round while it is being decided.
type choice struct {
	*turns
	round
	now      time.Time
	limit    int
	free     placement.Resources // at the beginning of the round
	reserved *app.Waiting
	skipped  []app.Waiting // whose turn came and who did not fit
}

// refuse sorts out the jobs that can never start.
func (c *choice) refuse(executor string, waiting []app.Waiting) []app.Waiting {
	var possible []app.Waiting
	for _, w := range waiting {
		lack := c.slots.never(w.Needs)
		if lack == (placement.Resources{}) {
			possible = append(possible, w)
			continue
		}
		delete(c.passed, w.ID)
		has := within(c.slots.total(), lack)
		c.Impossible = append(c.Impossible, refusal{w.ID, impossible(executor, lack, has)})
	}
	return possible
}

// within gives of has only what lack speaks of.
func within(has, lack placement.Resources) placement.Resources {
	if lack.CPUs == 0 {
		has.CPUs = 0
	}
	if lack.MemoryBytes == 0 {
		has.MemoryBytes = 0
	}
	if lack.GPUs == 0 {
		has.GPUs = 0
	}
	return has
}

// serve lets jobs of one priority start, turn by turn. The job with the
// reservation goes first where it fits: room was kept for it.
func (c *choice) serve(lines []*line) {
	for _, l := range lines {
		c.serveReserved(l)
	}
	for {
		l := c.next(lines)
		if l == nil {
			return
		}
		c.serveUser(l)
	}
}

func (c *choice) serveReserved(l *line) {
	for i, w := range l.jobs {
		if c.reserved == nil || w.ID != c.reserved.ID || !c.fits(w) {
			continue
		}
		l.jobs = append(l.jobs[:i:i], l.jobs[i+1:]...)
		c.start(w)
		c.reserved = nil
		return
	}
}

// serveUser walks a user's jobs until one starts: then it is time to ask
// again whose turn it is.
func (c *choice) serveUser(l *line) {
	for len(l.jobs) > 0 {
		w := l.jobs[0]
		l.jobs = l.jobs[1:]
		if c.fits(w) {
			c.start(w)
			return
		}
		c.Reasons[w.ID] = c.reason(w)
		c.skipped = append(c.skipped, w)
	}
}

func (c *choice) fits(w app.Waiting) bool {
	return len(c.Start) < c.limit && c.slots.lacks(w.Needs, keptFrom(w, c.reserved)) == (placement.Resources{})
}

// keptFrom gives the room that w must leave alone. A reservation binds all but
// the job itself and those of a higher priority.
func keptFrom(w app.Waiting, reserved *app.Waiting) placement.Resources {
	if reserved == nil || w.ID == reserved.ID || w.Priority > reserved.Priority {
		return placement.Resources{}
	}
	return reserved.Needs
}

// start takes the room of w. Whoever was skipped before has now been passed
// over.
func (c *choice) start(w app.Waiting) {
	c.Start = append(c.Start, lease{w, c.slots.lease(w.Needs)})
	u := userOf(w)
	c.running[u]++
	c.starts++
	c.started[u] = c.starts
	delete(c.passed, w.ID)
	for _, w := range c.skipped {
		if c.passed[w.ID] == nil {
			c.passed[w.ID] = &passedOver{Waiting: w, since: c.now}
		}
	}
	c.skipped = c.skipped[:0]
}

// reason says why w does not start in this round.
func (c *choice) reason(w app.Waiting) string {
	lack := c.slots.lacks(w.Needs, placement.Resources{})
	switch {
	case len(c.Start) >= c.limit:
		return "waiting for its turn"
	case c.reserved != nil && w.ID == c.reserved.ID:
		return "reserved: next to start, waiting for " + amounts(lack)
	case lack == (placement.Resources{}):
		return "reserved: what is free is kept for a job that has waited longer"
	case short(c.free, w.Needs) != (placement.Resources{}):
		return "waiting for " + amounts(lack)
	}
	return "waiting for its turn"
}
