package follow

import (
	"sync"
	"time"
)

// All streams together tell so many events a second, and so many at once after a
// quiet time. Beyond it they are told to list anew, which costs less.
const (
	eventsPerSecond = 5_000
	eventsAtOnce    = 20_000
)

// perPlace is how many events of the store count as one: most of them concern others,
// and a whole ring has to be within the budget.
const perPlace = 2

// budget bounds what all streams tell, so that a thousand of them don't take the
// CPUs from submissions.
type budget struct {
	mu   sync.Mutex
	left float64
	at   time.Time // zero: nothing was taken yet
}

// take takes n events, or none and returns false.
func (b *budget) take(n uint64, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at.IsZero() {
		b.left = eventsAtOnce
	} else {
		b.left = min(eventsAtOnce, b.left+eventsPerSecond*max(0, now.Sub(b.at).Seconds()))
	}
	b.at = now
	if float64(n) > b.left {
		return false
	}
	b.left -= float64(n)
	return true
}
