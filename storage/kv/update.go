package kv

import (
	"context"
	"fmt"
	"sync/atomic"

	"molrun/app/base/limit"
)

// Update runs fn in the writer's goroutine and returns once its changes are on disk. It
// shares a commit with other callers, so fn can run twice. If ctx ends before fn starts,
// fn does not run; after that Update always waits for the commit. A panic in fn
// propagates to the caller. fn must not call View or Update itself.
func (db *DB) Update(ctx context.Context, fn func(*Tx) error) error {
	if err := db.ready(ctx); err != nil {
		return err
	}
	c := &call{fn: fn, done: make(chan struct{})}
	finished := false
	limit.WithoutSlot(ctx, func() { finished = c.submit(ctx, db.writer.queue, db.writer.ended) })
	if !finished {
		if ctx.Err() != nil {
			return fmt.Errorf("wait for the store: %w", context.Cause(ctx))
		}
		return errClosed()
	}
	if c.panicked != nil {
		panic(c.panicked)
	}
	return c.err
}

// call is a call of Update being processed by the writer.
type call struct {
	fn    func(*Tx) error
	state atomic.Int32  // callWaiting until the writer or the caller changes it
	done  chan struct{} // closed by the writer once the fields below are final

	err        error
	panicked   *panicked
	rolledBack bool // it failed after changes, which were rolled back
	suspect    bool // might have failed because of another call's change that was rolled back
}

const (
	callWaiting int32 = iota
	callTaken
	callWithdrawn
)

// submit queues the call. It returns true once the writer has finished it, and false if
// the writer has not started it and never will.
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

// panicked carries a closure's panic from the writer to the caller.
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
