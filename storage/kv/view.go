package kv

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"

	"molrun/app/base/limit"
	"molrun/storage/kv/boltfile"
)

// View runs fn on one consistent state and returns once that state is on disk. Apart from
// that it does not wait for writers. fn should return soon: until then the file cannot
// reuse pages.
func (db *DB) View(ctx context.Context, fn func(*Tx) error) error {
	if err := db.ready(ctx); err != nil {
		return err
	}
	b, err := db.file.Begin(false)
	if err != nil {
		return db.health.beginError(err)
	}
	seen := b.ID()
	err = db.runRead(b, fn)
	if notDurable := db.writer.last.wait(ctx, seen, db.health); notDurable != nil {
		return notDurable // the result or error of fn might depend on a lost commit
	}
	return err
}

// runRead runs fn on a read transaction and ends the transaction.
func (db *DB) runRead(b *bolt.Tx, fn func(*Tx) error) error {
	t := &Tx{bolt: b, schema: db.schema}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		v := recover()
		t.bolt = nil
		if v != nil && boltfile.IsDamage(v) {
			_ = db.health.fail(damagedError(v))
		}
		_ = b.Rollback() // cannot fail for a read transaction
		if v != nil {
			panic(v)
		}
	}()
	return fn(t)
}

// bbolt makes a commit visible to readers once its last page is written, before that page
// is synced. A power failure could undo what a reader sees in between. So a View that has
// seen the current commit waits for it, and fails if it fails.

// lastCommit is the latest commit that the writer has started.
type lastCommit struct{ current atomic.Pointer[commit] }

// commit is a commit that might not be on disk yet.
type commit struct {
	number int           // the transaction ID of readers that see the commit
	done   chan struct{} // closed once the commit is on disk or the database has failed
}

// beginCommit is called by the writer before a commit, when the previous one is on disk.
func (l *lastCommit) beginCommit(number int) *commit {
	c := &commit{number: number, done: make(chan struct{})}
	l.current.Store(c)
	return c
}

// wait returns once the commit that a reader has seen is on disk.
func (l *lastCommit) wait(ctx context.Context, seen int, h *health) error {
	c := l.current.Load()
	if c == nil || seen < c.number {
		return nil
	}
	ended := false
	limit.WithoutSlot(ctx, func() {
		select {
		case <-c.done:
		case <-ctx.Done():
			ended = true
		}
	})
	if ended {
		return fmt.Errorf("wait for the store: %w", context.Cause(ctx))
	}
	return h.err()
}
