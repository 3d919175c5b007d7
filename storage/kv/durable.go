package kv

import (
	"context"
	"fmt"
	"sync/atomic"
)

// bbolt shows a commit to readers once its last page is written, before that
// page is synced. A power cut may take back what a reader sees in between. So a
// View that has seen the current commit waits for it, and fails with it.

// lastCommit is the commit that the writer has begun last.
type lastCommit struct{ current atomic.Pointer[commit] }

// commit is a commit on its way to the disk.
type commit struct {
	number int           // readers that see the commit have it as the ID of their transaction
	done   chan struct{} // closed when it is on the disk or the database has failed
}

// begin is called by the writer before a commit. The one before it is on the
// disk.
func (l *lastCommit) begin(number int) *commit {
	c := &commit{number: number, done: make(chan struct{})}
	l.current.Store(c)
	return c
}

// wait returns once the commit with the number that a reader has seen is on the
// disk.
func (l *lastCommit) wait(ctx context.Context, seen int, h *health) error {
	c := l.current.Load()
	if c == nil || seen < c.number {
		return nil
	}
	select {
	case <-c.done:
		return h.err()
	case <-ctx.Done():
		return fmt.Errorf("wait for the store: %w", context.Cause(ctx))
	}
}
