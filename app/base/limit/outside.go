package limit

import (
	"context"
	"sync"
)

// pass is the slot of a request that has entered.
type pass struct {
	slots  *Slots
	holder string

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
		p.held = p.slots.take(ctx, returning, p.holder) == nil
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
		p.slots.release(p.holder)
	}
}
