// Package forecast looks ahead: at which place of the queue a job stands, and when
// it starts.
package forecast

import (
	"math"
	"time"

	"molrun/app"
	"molrun/app/eta"
	"molrun/app/runner/turns"
)

// State is how an executor stands after a round.
type State struct {
	Turns   *turns.Turns // a copy of its own
	At      time.Time
	Claimed map[app.JobID]bool // in the queue perhaps, but already being started
	Running map[app.JobID]turns.Lease
	Rest    eta.Reason // why those jobs wait that the round did not look at
	Blocked bool       // no job starts
}

// Outlook says where the jobs of an executor's queue stand. It does not change.
type Outlook struct {
	order  *turns.Order
	spots  map[app.JobID]turns.Spot
	of     int
	reason eta.Reason
	starts map[app.JobID]start
}

var _ app.Outlook = (*Outlook)(nil)

// New returns the outlook of a queue. It knows the jobs that the lines list, and
// counts the others.
func New(s State, queue []app.QueueLine, past Past) *Outlook {
	o := &Outlook{spots: make(map[app.JobID]turns.Spot, listed(queue)), reason: s.Rest, starts: simulate(s, queue, newTimes(past))}
	lines := make([]turns.Line, 0, len(queue))
	for _, q := range queue {
		line := turns.Line{User: turns.User{Organization: q.Organization, Email: q.Email}, Priority: q.Priority, Count: q.Count}
		n := 0
		for _, w := range q.Jobs {
			if s.Claimed[w.ID] {
				line.Count--
				continue
			}
			if n == 0 {
				line.Head = w.ID
			}
			o.spots[w.ID] = turns.Spot{Line: len(lines), N: n}
			n++
		}
		o.of += line.Count
		lines = append(lines, line)
	}
	reserved := turns.NoSpot
	if spot, ok := o.spots[s.Turns.Reserved(s.At)]; ok {
		reserved = spot
	}
	o.order = s.Turns.Order(lines, reserved)
	return o
}

func listed(queue []app.QueueLine) (n int) {
	for _, q := range queue {
		n += len(q.Jobs)
	}
	return n
}

// Queue returns the place of a job, and why it waits as far as that follows from its
// place; false if it does not know the job.
func (o *Outlook) Queue(id app.JobID, now time.Time) (q eta.Queue, why eta.Reason, ok bool) {
	spot, ok := o.spots[id]
	if !ok {
		return q, why, false
	}
	q = eta.Queue{Position: o.order.Position(spot), Of: o.of}
	if start, known := o.starts[id]; known {
		q.ETASeconds, q.ETABasis = max(1, int64(math.Round(start.at.Sub(now).Seconds()))), start.basis
	}
	return q, o.reason, true
}
