package edge

import (
	"math"
	"sync"
	"time"
)

// maxBuckets bounds the memory of one limiter.
const maxBuckets = 10_000

// RateLimiter is a token bucket for each name: it allows rate events a second,
// and a burst of as many as one second allows. A nil limiter allows everything.
type RateLimiter struct {
	rate float64
	now  func() time.Time

	mu     sync.Mutex
	byName map[string]bucket
}

type bucket struct {
	left float64
	at   time.Time
}

// NewRateLimiter returns a limiter with the clock now, nil if rate is not above 0.
func NewRateLimiter(rate float64, now func() time.Time) *RateLimiter {
	if rate <= 0 {
		return nil
	}
	return &RateLimiter{rate: rate, now: now, byName: map[string]bucket{}}
}

// Allow reports whether name may go on, and counts it if so.
func (l *RateLimiter) Allow(name string) bool {
	if l == nil {
		return true
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	left := l.filled(name, now)
	if left < 1 {
		return false
	}
	if len(l.byName) >= maxBuckets {
		l.forget(now)
	}
	l.byName[name] = bucket{left - 1, now}
	return true
}

func (l *RateLimiter) size() float64 { return math.Max(1, l.rate) }

func (l *RateLimiter) filled(name string, now time.Time) float64 {
	old, found := l.byName[name]
	if !found {
		return l.size()
	}
	return math.Min(l.size(), old.left+l.rate*now.Sub(old.at).Seconds())
}

// forget drops the names whose buckets are full again, or all names if none
// is. It bounds the memory that a flood of names can take.
func (l *RateLimiter) forget(now time.Time) {
	for name := range l.byName {
		if l.filled(name, now) >= l.size() {
			delete(l.byName, name)
		}
	}
	if len(l.byName) >= maxBuckets {
		clear(l.byName)
	}
}
