package kv

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"molrun/storage/kv/boltfile"
)

// call is one Update on its way through the writer.
type call struct {
	fn    func(*Tx) error
	state atomic.Int32  // callWaiting until the writer or the caller changes it
	done  chan struct{} // closed by the writer once the fields below are final

	err        error
	panicked   *panicked
	rolledBack bool // it failed after changes, which were rolled back
	suspect    bool // its failure may be due to a change that was rolled back with them
}

const (
	callWaiting int32 = iota
	callTaken
	callWithdrawn
)

// submit queues the call. It returns true once the writer has finished it, and
// false if the writer has not begun it and never will.
func (c *call) submit(ctx context.Context, queue chan<- *call, ended <-chan struct{}) bool {
	select {
	case queue <- c:
		select {
		case <-c.done:
			return true
		case <-ctx.Done():
		case <-ended:
		}
	case <-ctx.Done():
	case <-ended:
	}
	if c.state.CompareAndSwap(callWaiting, callWithdrawn) {
		return false
	}
	<-c.done
	return true
}

// run runs the closure in the writer's goroutine. It keeps a panic of the
// closure for the caller; a panic of bbolt is returned as damage.
func (c *call) run(t *Tx) (damage error) {
	c.err, c.panicked = nil, nil
	defer func() {
		switch v := recover(); {
		case v == nil:
		case boltfile.IsDamage(v):
			damage = damagedError(v)
		default:
			c.panicked = &panicked{v, debug.Stack()}
		}
	}()
	c.err = c.fn(t)
	return nil
}

// panicked is a closure's panic on its way from the writer to the caller.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string {
	return fmt.Sprintf("%v\n\nin a closure of Update:\n%s", p.value, p.stack)
}

// Unwrap returns the value of the panic if it is an error.
func (p *panicked) Unwrap() error {
	err, _ := p.value.(error)
	return err
}
