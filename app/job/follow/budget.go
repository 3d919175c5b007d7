package follow

import (
	"time"

	"golang.org/x/time/rate"
)

// All streams together send a limited number of events per second, plus a burst after an
// idle time, so that a thousand streams don't starve submissions of CPU time. A stream
// over the limit makes its client list the jobs again, which costs less.
const (
	eventsPerSecond = 5_000
	eventsAtOnce    = 20_000
)

// perPlace is how many stored events count as one event of the budget. Most of them
// concern other streams, and the budget must allow a client to catch up with all stored
// events.
const perPlace = 2

func newBudget() *rate.Limiter { return rate.NewLimiter(eventsPerSecond, eventsAtOnce) }

// takeBudget reports whether n events are within the budget and, if so, deducts them.
func (f *Follower) takeBudget(n uint64) bool {
	return n <= eventsAtOnce && f.budget.AllowN(time.Now(), int(n))
}
