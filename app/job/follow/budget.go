package follow

import (
	"time"

	"golang.org/x/time/rate"
)

// All streams together send a limited number of events a second, and a number at once after a
// quiet time, so that a thousand of them don't take the CPUs from submissions. Beyond it
// they have to list the jobs again, which costs less.
const (
	eventsPerSecond = 5_000
	eventsAtOnce    = 20_000
)

// perPlace is how many events of the store count as one: most of them concern others,
// and a whole ring has to be within the budget.
const perPlace = 2

func newBudget() *rate.Limiter { return rate.NewLimiter(eventsPerSecond, eventsAtOnce) }

// takeBudget reports whether n events are within the budget, and counts them if so.
func (f *Follower) takeBudget(n uint64) bool {
	return n <= eventsAtOnce && f.budget.AllowN(time.Now(), int(n))
}
