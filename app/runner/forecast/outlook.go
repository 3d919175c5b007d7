// Package forecast looks ahead: at which place of the queue a job stands, and when
// it starts.
package forecast

import (
	"math"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/job/eta"
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
	state    State
	past     Past
	queue    []app.QueueLine // without claimed jobs
	reserved turns.Spot
	order    *turns.Order
	spots    map[app.JobID]turns.Spot
	of       int
	running  *ends
	starts   map[app.JobID]start
}

var _ app.Outlook = (*Outlook)(nil)

// New returns the outlook of a queue, which it takes over. It knows the jobs that the lines
// list, and counts the others.
func New(s State, queue []app.QueueLine, past Past) *Outlook {
	o := &Outlook{state: s, past: past, queue: queue, reserved: turns.NoSpot}
	s.dropClaimed(queue)
	listed := 0
	for _, q := range o.queue {
		listed += len(q.Jobs)
		o.of += q.Count
	}
	o.spots = make(map[app.JobID]turns.Spot, listed)
	for i, q := range o.queue {
		for n, w := range q.Jobs {
			o.spots[w.ID] = turns.Spot{Line: i, N: n}
		}
	}
	if spot, ok := o.spots[s.Turns.Reserved(s.At)]; ok {
		o.reserved = spot
	}
	o.order = s.Turns.Order(linesOf(o.queue), o.reserved)
	times := newTimes(past)
	o.running = endsOf(s, times)
	o.starts = simulate(s, o.queue, o.running, times)
	return o
}

// dropClaimed removes the jobs that are being started from a queue.
func (s State) dropClaimed(queue []app.QueueLine) {
	for i := range queue {
		q := &queue[i]
		listed := len(q.Jobs)
		q.Jobs = slices.DeleteFunc(q.Jobs, func(w app.Waiting) bool { return s.Claimed[w.ID] })
		q.Count -= listed - len(q.Jobs)
	}
}

func linesOf(queue []app.QueueLine) []turns.Line {
	lines := make([]turns.Line, len(queue))
	for i, q := range queue {
		lines[i] = turns.Line{User: turns.User{Organization: q.Organization, Email: q.Email}, Priority: q.Priority, Count: q.Count}
		if len(q.Jobs) > 0 {
			lines[i].Head = q.Jobs[0].ID
		}
	}
	return lines
}

// Listed is how many jobs the outlook knows one by one.
func (o *Outlook) Listed() int { return len(o.spots) }

// Queue returns the place of a job, and why it waits as far as that follows from its
// place; false if it does not know the job.
func (o *Outlook) Queue(id app.JobID, now time.Time) (q eta.Queue, why eta.Reason, ok bool) {
	spot, ok := o.spots[id]
	if !ok {
		return q, why, false
	}
	q = eta.Queue{Position: o.order.Position(spot), Of: o.of}
	if start, known := o.starts[id]; known {
		q.ETASeconds, q.ETABasis = wait(now, start.at), start.basis
	}
	return q, o.state.Rest, true
}

// wait returns the seconds until a time, at least 1.
func wait(now, until time.Time) int64 {
	return max(1, int64(math.Round(until.Sub(now).Seconds())))
}
