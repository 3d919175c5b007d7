package limit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxNames limits the memory of one Rates.
const maxNames = 10_000

// Rates keeps a token bucket for each name. It allows a number of events per second, and
// bursts of as many events as are allowed in one second. A nil Rates allows everything.
type Rates struct {
	perSecond float64
	now       func() time.Time

	mu     sync.Mutex
	byName map[string]*rate.Limiter
}

// NewRates returns a Rates that uses the clock now, or nil if perSecond is not positive.
func NewRates(perSecond float64, now func() time.Time) *Rates {
	if perSecond <= 0 {
		return nil
	}
	return &Rates{perSecond: perSecond, now: now, byName: map[string]*rate.Limiter{}}
}

// Allow reports whether an event of name is allowed, and if so counts it.
func (r *Rates) Allow(name string) bool {
	if r == nil {
		return true
	}
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.byName[name]
	if l == nil {
		if len(r.byName) >= maxNames {
			r.forget(now)
		}
		l = rate.NewLimiter(rate.Limit(r.perSecond), max(1, int(r.perSecond)))
		r.byName[name] = l
	}
	return l.AllowN(now, 1)
}

// forget drops the names whose buckets are full again, or all names if none is. It limits
// the memory that a flood of names can take.
func (r *Rates) forget(now time.Time) {
	for name, l := range r.byName {
		if l.TokensAt(now) >= float64(l.Burst()) {
			delete(r.byName, name)
		}
	}
	if len(r.byName) >= maxNames {
		clear(r.byName)
	}
}
