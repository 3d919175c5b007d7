package schedule

import (
	"slices"
	"time"

	"molrun/app"
	"molrun/app/job/eta"
)

// Forecast returns how jobs of one user and priority would be scheduled if they were
// queued now, in this order.
func (o *QueueForecast) Forecast(now time.Time, jobs []app.Waiting) eta.Forecast {
	queue, spot, reserved := o.queueWith(jobs)
	order := o.state.Share.Order(queueLines(queue), reserved)
	f := eta.Forecast{Queue: eta.Queue{Position: order.Position(spot), Of: o.of + len(jobs)}}
	if o.state.Blocked {
		f.Queue.BlockedBy = o.state.Rest.By
	}
	s := o.state
	s.At = now
	times := newRunTimes(o.past)
	starts := simulate(s, queue, o.running.from(now), times)
	var last time.Time
	for i, w := range jobs {
		start, known := starts[w.ID]
		if !known {
			return f
		}
		if wait := waitSeconds(now, start.at); i == 0 || wait < f.Queue.ETASeconds {
			f.Queue.ETASeconds, f.Queue.ETABasis = wait, start.basis
		}
		e := times.estimate(w.Work)
		if !e.Known() {
			return f
		}
		if end := start.at.Add(seconds(e.Seconds())); end.After(last) {
			last = end
		}
	}
	f.EndSeconds = waitSeconds(now, last)
	return f
}

// queueWith returns the queue with the jobs added, the spot of the first of them, and
// that of the job holding the reservation.
func (o *QueueForecast) queueWith(jobs []app.Waiting) (queue []app.QueueLine, first, reserved Spot) {
	queue, reserved = slices.Clone(o.queue), o.reserved
	w := jobs[0]
	at := slices.IndexFunc(queue, func(q app.QueueLine) bool {
		return q.Priority == w.Priority && q.Organization == w.Organization && q.Email == w.Email
	})
	if at < 0 {
		at = len(queue)
		if lower := slices.IndexFunc(queue, func(q app.QueueLine) bool { return q.Priority < w.Priority }); lower >= 0 {
			at = lower
		}
		if reserved.Line >= at {
			reserved.Line++
		}
		queue = slices.Insert(queue, at, app.QueueLine{Organization: w.Organization, Email: w.Email, Priority: w.Priority})
	}
	q := &queue[at]
	first = Spot{Line: at, N: q.Count}
	if len(q.Jobs) == q.Count {
		q.Jobs = slices.Concat(q.Jobs, jobs)
	}
	q.Count += len(jobs)
	return queue, first, reserved
}
