package limit

import (
	"context"
	"sync"
)

// heldSlot is the slot of a request that has called Enter.
type heldSlot struct {
	slots  *Slots
	holder string

	mu      sync.Mutex
	held    bool
	yielded int // calls of WithoutSlot in progress
}

type slotKey struct{}

// WithoutSlot calls wait after releasing the slot of ctx, if it has one. Afterwards it
// acquires a slot again, unless ctx is done.
func WithoutSlot(ctx context.Context, wait func()) {
	p, _ := ctx.Value(slotKey{}).(*heldSlot)
	if p == nil {
		wait()
		return
	}
	p.yield()
	defer p.reacquire(ctx)
	wait()
}

func (p *heldSlot) yield() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.yielded++
	p.giveBack()
}

func (p *heldSlot) reacquire(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.yielded--; p.yielded == 0 {
		p.held = p.slots.acquire(ctx, returning, p.holder) == nil
	}
}

func (p *heldSlot) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.giveBack()
}

func (p *heldSlot) giveBack() {
	if p.held {
		p.held = false
		p.slots.release(p.holder)
	}
}
