package notice

import (
	"net/http"
	"time"

	"molrun/app/base/unit"
)

// Schedule says when a delivery is tried again: after First, then after twice as long
// each time, up to Longest, until GiveUpAfter.
type Schedule struct{ First, Longest, GiveUpAfter time.Duration }

// DefaultSchedule gives receivers a day to come back.
func DefaultSchedule() Schedule {
	return Schedule{First: 5 * time.Second, Longest: 2 * time.Hour, GiveUpAfter: 24 * time.Hour}
}

// Pause returns how long to wait after n failed attempts in a row.
func (s Schedule) Pause(n int) time.Duration {
	pause := s.First
	for ; n > 1 && pause < s.Longest; n-- {
		pause *= 2
	}
	return min(pause, s.Longest)
}

// Attempt is how one attempt ended. Without an error, it was delivered.
type Attempt struct {
	Status     int           // of the answer, 0 without one: any message may have failed
	Error      string        // a sentence
	RetryAfter time.Duration // as the receiver asks
	Final      bool          // the receiver will never take the message
}

// Tried records an attempt. A receiver that refuses the message for good, or says that it
// is gone, is not asked again.
func (d *Delivery) Tried(a Attempt, now time.Time, s Schedule) {
	d.Attempts++
	d.Status, d.Error = a.Status, a.Error
	switch {
	case a.Error == "":
		d.markEnded(Delivered, now)
	case a.Final:
		d.GiveUp("refused for good: "+a.Error, now)
	case a.Status == http.StatusGone:
		d.GiveUp("the receiver is gone for good: "+a.Error, now)
	case now.Sub(d.CreatedAt.Time) >= s.GiveUpAfter:
		d.GiveUp("given up: "+a.Error, now)
	default:
		d.NextAt = unit.At(now.Add(max(s.Pause(d.Attempts), min(a.RetryAfter, s.Longest))))
	}
}

// GiveUp ends a delivery that was not made.
func (d *Delivery) GiveUp(why string, now time.Time) {
	d.Error = why
	d.markEnded(GivenUp, now)
}
