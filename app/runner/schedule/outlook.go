package schedule

import (
	"math"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/job/eta"
)

// QueueState is the state of an executor after a round.
type QueueState struct {
	Share   *FairShare // a private copy
	At      time.Time
	Claimed map[app.JobID]bool // jobs already being started, which may still be in the queue
	Running map[app.JobID]Lease
	Rest    eta.Reason // wait reason of the jobs that the round did not scan
	Blocked bool       // no job can start
}

// QueueForecast forecasts when the queued jobs of an executor start. It is immutable.
type QueueForecast struct {
	state    QueueState
	past     RunHistory
	queue    []app.QueueLine // without claimed jobs
	reserved Spot
	order    *Order
	spots    map[app.JobID]Spot
	of       int
	running  *slotEnds
	starts   map[app.JobID]plannedStart
}

var _ app.QueueForecast = (*QueueForecast)(nil)

// NewQueueForecast returns the forecast of a queue, and takes ownership of that queue. It
// forecasts the jobs listed in the lines, and only counts the others.
func NewQueueForecast(s QueueState, queue []app.QueueLine, past RunHistory) *QueueForecast {
	o := &QueueForecast{state: s, past: past, queue: queue, reserved: NoSpot}
	s.dropClaimed(queue)
	listed := 0
	for _, q := range o.queue {
		listed += len(q.Jobs)
		o.of += q.Count
	}
	o.spots = make(map[app.JobID]Spot, listed)
	for i, q := range o.queue {
		for n, w := range q.Jobs {
			o.spots[w.ID] = Spot{Line: i, N: n}
		}
	}
	if spot, ok := o.spots[s.Share.Reserved(s.At)]; ok {
		o.reserved = spot
	}
	o.order = s.Share.Order(queueLines(o.queue), o.reserved)
	times := newRunTimes(past)
	o.running = slotEndsOf(s, times)
	o.starts = simulate(s, o.queue, o.running, times)
	return o
}

// dropClaimed removes from a queue the jobs that are being started.
func (s QueueState) dropClaimed(queue []app.QueueLine) {
	for i := range queue {
		q := &queue[i]
		listed := len(q.Jobs)
		q.Jobs = slices.DeleteFunc(q.Jobs, func(w app.Waiting) bool { return s.Claimed[w.ID] })
		q.Count -= listed - len(q.Jobs)
	}
}

func queueLines(queue []app.QueueLine) []Line {
	lines := make([]Line, len(queue))
	for i, q := range queue {
		lines[i] = Line{User: User{Organization: q.Organization, Email: q.Email}, Priority: q.Priority, Count: q.Count}
		if len(q.Jobs) > 0 {
			lines[i].Head = q.Jobs[0].ID
		}
	}
	return lines
}

// Listed returns the number of jobs that the forecast lists individually.
func (o *QueueForecast) Listed() int { return len(o.spots) }

// Queue returns the position of a job, and why it waits as far as its position explains
// it. It returns false if the job is not listed.
func (o *QueueForecast) Queue(id app.JobID, now time.Time) (q eta.Queue, why eta.Reason, ok bool) {
	spot, ok := o.spots[id]
	if !ok {
		return q, why, false
	}
	q = eta.Queue{Position: o.order.Position(spot), Of: o.of}
	if start, known := o.starts[id]; known {
		q.ETASeconds, q.ETABasis = waitSeconds(now, start.at), start.basis
	}
	return q, o.state.Rest, true
}

// waitSeconds returns the seconds until a time, at least 1.
func waitSeconds(now, until time.Time) int64 {
	return max(1, int64(math.Round(until.Sub(now).Seconds())))
}
