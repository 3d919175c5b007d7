package kv

import (
	"context"
	"fmt"
)

// bbolt shows a commit to readers once its last page is written, before that
// page is synced. A power cut may take back what a reader sees in between. So a
// View that has seen the current commit waits for it, and fails with it.

// commit is a commit on its way to the disk.
type commit struct {
	number int           // readers that see the commit have it as the ID of their transaction
	done   chan struct{} // closed when it is on the disk or the database has failed
}

// waitDurable returns once the commit with the number that a reader has seen
// is on the disk.
func (w *writer) waitDurable(ctx context.Context, seen int) error {
	last := w.last.Load()
	if last == nil || seen < last.number {
		return nil // the writer begins no commit before the one before it is on the disk
	}
	select {
	case <-last.done:
	case <-ctx.Done():
		return fmt.Errorf("wait for the store: %w", context.Cause(ctx))
	}
	return w.health.err()
}
