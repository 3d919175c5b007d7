// Package limit bounds how many requests compute at once, so that others, which need
// little, find a processor. Go runs goroutines in the order in which they became ready,
// and looks for what has arrived on the network when none is left: without a bound, a
// page waits for all submissions that came before it.
package limit

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Gate has a few slots, each for one request that computes. Whoever has waited outside
// comes first, then what arrives, then users in turns; the requests of one are first
// come, first served.
type Gate struct {
	mu        sync.Mutex
	free      int
	returning []place
	arriving  []place
	waiting   map[string][]place // by user
	order     []string           // of waiting, whose turn is next first
}

// place is one in a queue. It is closed when it has a slot.
type place chan struct{}

// New returns a gate with so many slots.
func New(slots int) *Gate { return &Gate{free: slots, waiting: map[string][]place{}} }

// ForProcessors returns a gate that leaves two of the processors that run goroutines to
// others: one to the store's writer, and one to requests that pass no gate.
func ForProcessors() *Gate { return New(max(2, runtime.GOMAXPROCS(0)-2)) }

// arrivalTime bounds how long a request waits before anything is known of it. It then
// goes on without a slot.
const arrivalTime = 10 * time.Second

// Arrive waits for a slot for a request whose user is not known yet. The caller must
// call leave as soon as the user is, or when the rest of the request has not arrived.
func (g *Gate) Arrive() (leave func()) {
	ctx, cancel := context.WithTimeout(context.Background(), arrivalTime)
	defer cancel()
	if !g.take(ctx, func(p place) { g.arriving = append(g.arriving, p) }) {
		return func() {}
	}
	return g.leave
}

// Enter waits for a slot until ctx ends. The slot belongs to the context that it
// returns, until leave is called.
func (g *Gate) Enter(ctx context.Context, user string) (inside context.Context, leave func(), err error) {
	if !g.take(ctx, func(p place) { g.queue(user, p) }) {
		return nil, nil, context.Cause(ctx)
	}
	p := &pass{gate: g, held: true}
	return context.WithValue(ctx, passKey{}, p), p.leave, nil
}

// pass is the slot of a request.
type pass struct {
	gate *Gate

	mu      sync.Mutex
	held    bool
	outside int // calls of Outside in progress
}

type passKey struct{}

// Outside runs wait without the slot that ctx may have. Afterwards ctx has a slot again,
// unless it has ended.
func Outside(ctx context.Context, wait func()) {
	p, _ := ctx.Value(passKey{}).(*pass)
	if p == nil {
		wait()
		return
	}
	p.goOut()
	defer p.comeBack(ctx)
	wait()
}

func (p *pass) goOut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outside++
	p.giveUp()
}

func (p *pass) comeBack(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.outside--; p.outside == 0 {
		p.held = p.gate.take(ctx, func(queued place) { p.gate.returning = append(p.gate.returning, queued) })
	}
}

func (p *pass) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.giveUp()
}

func (p *pass) giveUp() {
	if p.held {
		p.held = false
		p.gate.leave()
	}
}

// take takes a slot, or queues for one until ctx ends.
func (g *Gate) take(ctx context.Context, queue func(place)) bool {
	g.mu.Lock()
	if g.free > 0 { // so nobody waits
		g.free--
		g.mu.Unlock()
		return true
	}
	p := make(place)
	queue(p)
	g.mu.Unlock()
	select {
	case <-p:
		return true
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.withdraw(p) { // it was granted just now
		g.grant()
	}
	return false
}

// Waiting returns how many requests wait for a slot.
func (g *Gate) Waiting() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, places := range g.waiting {
		n += len(places)
	}
	return n + len(g.returning) + len(g.arriving)
}

func (g *Gate) queue(user string, p place) {
	if len(g.waiting[user]) == 0 {
		g.order = append(g.order, user)
	}
	g.waiting[user] = append(g.waiting[user], p)
}

// withdraw takes a place out of its queue, unless it is in none.
func (g *Gate) withdraw(p place) bool {
	for _, places := range []*[]place{&g.returning, &g.arriving} {
		if i := slices.Index(*places, p); i >= 0 {
			*places = slices.Delete(*places, i, i+1)
			return true
		}
	}
	for i, user := range g.order {
		if k := slices.Index(g.waiting[user], p); k >= 0 {
			g.keep(user, slices.Delete(g.waiting[user], k, k+1))
			if g.waiting[user] == nil {
				g.order = slices.Delete(g.order, i, i+1)
			}
			return true
		}
	}
	return false
}

func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.grant()
}

// grant gives a slot to whose turn it is.
func (g *Gate) grant() {
	for _, places := range []*[]place{&g.returning, &g.arriving} {
		if len(*places) > 0 {
			close((*places)[0])
			*places = (*places)[1:]
			return
		}
	}
	if len(g.order) == 0 {
		g.free++
		return
	}
	user := g.order[0]
	g.order = g.order[1:]
	places := g.waiting[user]
	close(places[0])
	g.keep(user, places[1:])
	if g.waiting[user] != nil {
		g.order = append(g.order, user)
	}
}

func (g *Gate) keep(user string, places []place) {
	if len(places) == 0 {
		delete(g.waiting, user)
		return
	}
	g.waiting[user] = places
}
