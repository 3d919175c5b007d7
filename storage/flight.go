package storage

import (
	"context"
	"fmt"
)

// bbolt shows a commit to readers once its last page is written, before that
// page is synced. Whoever answered a client from what was read in between would
// promise what a power cut may take back. So a View that has seen a commit
// under way returns when that is on the disk, and fails where it never will be.

// flight is a commit under way.
type flight struct {
	number int           // of the commit; readers who see it find it as the ID of their transaction
	landed chan struct{} // closed when it is on the disk or the store has failed
}

// takeOff lets readers know of the commit that the writer is about to make.
// Earlier ones have landed.
func (s *Store) takeOff(number int) *flight {
	f := &flight{number: number, landed: make(chan struct{})}
	s.flying.Store(f)
	return f
}

func (f *flight) land() { close(f.landed) }

// durable returns once the commit of that number, which a reader has seen, is
// on the disk.
func (s *Store) durable(ctx context.Context, seen int) error {
	f := s.flying.Load()
	if f == nil || seen < f.number {
		return nil
	}
	select {
	case <-f.landed:
	case <-ctx.Done():
		return fmt.Errorf("wait for the store: %w", context.Cause(ctx))
	}
	if broken := s.broken.Load(); broken != nil {
		return broken
	}
	return nil
}
