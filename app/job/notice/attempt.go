package notice

import (
	"net/http"
	"time"

	"molrun/app/base/unit"
)

// Schedule defines the retries of a delivery: the first after First, each further one
// after twice the previous wait, which is limited to Longest. GiveUpAfter is the time
// after which a delivery is abandoned.
type Schedule struct{ First, Longest, GiveUpAfter time.Duration }

// DefaultSchedule returns a schedule that gives receivers a day to recover.
func DefaultSchedule() Schedule {
	return Schedule{First: 5 * time.Second, Longest: 2 * time.Hour, GiveUpAfter: 24 * time.Hour}
}

// Pause returns the wait after n consecutive failed attempts.
func (s Schedule) Pause(n int) time.Duration {
	pause := s.First
	for ; n > 1 && pause < s.Longest; n-- {
		pause *= 2
	}
	return min(pause, s.Longest)
}

// Attempt is the result of one attempt to deliver a message. The message was delivered if
// Error is "".
type Attempt struct {
	Status     int           // of the response; 0 if there was none, which is not specific to the message
	Error      string        // a sentence
	RetryAfter time.Duration // requested by the receiver
	Final      bool          // permanently rejected by the receiver
}

// Tried records an attempt. There are no further attempts if the receiver permanently
// rejects the message or responds that it is gone.
func (d *Delivery) Tried(a Attempt, now time.Time, s Schedule) {
	d.Attempts++
	d.Status, d.Error = a.Status, a.Error
	switch {
	case a.Error == "":
		d.markEnded(Delivered, now)
	case a.Final:
		d.Abandon("permanently rejected: "+a.Error, now)
	case a.Status == http.StatusGone:
		d.Abandon("the receiver no longer exists: "+a.Error, now)
	case now.Sub(d.CreatedAt.Time) >= s.GiveUpAfter:
		d.Abandon("abandoned: "+a.Error, now)
	default:
		d.NextAt = unit.At(now.Add(max(s.Pause(d.Attempts), min(a.RetryAfter, s.Longest))))
	}
}

// Abandon abandons a delivery.
func (d *Delivery) Abandon(why string, now time.Time) {
	d.Error = why
	d.markEnded(Abandoned, now)
}
