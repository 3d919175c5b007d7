package web

import (
	"math"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// maxBuckets bounds the memory of one set of buckets.
const maxBuckets = 10_000

// buckets limits how often each name may do something: rate times a second,
// and as many at once as one second allows. A nil set has no limit.
type buckets struct {
	rate float64
	now  func() time.Time

	mu     sync.Mutex
	byName map[string]bucket
}

type bucket struct {
	left float64
	at   time.Time
}

func newBuckets(rate float64, now func() time.Time) *buckets {
	if rate <= 0 {
		return nil
	}
	return &buckets{rate: rate, now: now, byName: map[string]bucket{}}
}

// take reports whether name may go on, and counts it if so.
func (b *buckets) take(name string) bool {
	if b == nil {
		return true
	}
	now := b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.filled(name, now)
	if left < 1 {
		return false
	}
	if len(b.byName) >= maxBuckets {
		b.forget(now)
	}
	b.byName[name] = bucket{left - 1, now}
	return true
}

func (b *buckets) size() float64 { return math.Max(1, b.rate) }

func (b *buckets) filled(name string, now time.Time) float64 {
	old, found := b.byName[name]
	if !found {
		return b.size()
	}
	return math.Min(b.size(), old.left+b.rate*now.Sub(old.at).Seconds())
}

// forget drops the names whose buckets are full again, or all where none is:
// a flood of names must not take memory without end.
func (b *buckets) forget(now time.Time) {
	for name := range b.byName {
		if b.filled(name, now) >= b.size() {
			delete(b.byName, name)
		}
	}
	if len(b.byName) >= maxBuckets {
		clear(b.byName)
	}
}

// exempt reports whether refused keys from the request's address are not
// counted: on this machine and behind a trusted proxy all users share one.
func (a *API) exempt(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return true // not TCP: a socket of this machine
	}
	ip := from.Addr().Unmap()
	if ip.IsLoopback() {
		return true
	}
	for _, proxy := range a.options.TrustedProxies {
		if proxy.Contains(ip) {
			return true
		}
	}
	return false
}

// remote gives the address that a request came from, for logs.
func remote(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return from.Addr().Unmap().WithZone("").String()
}

// address names who sent the request: an IPv4 address, or the IPv6 network
// that one customer gets.
func address(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	ip := from.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	network, _ := ip.Prefix(64) // an IPv6 address has 128 bits
	return network.String()
}
