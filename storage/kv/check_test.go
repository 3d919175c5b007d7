package kv

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"molrun/app/test/must"
)

func TestCheckFindsDamagedPages(t *testing.T) {
	db := openAt(t, newPath(t), Options{})
	put(t, db, upTo(300)...)
	zeroRoot(t, db, indexKind)
	must.Fail(t, "the error", db.Check(t.Context()), "Page")
}

func TestCheckAndSnapshotEndWithTheirContext(t *testing.T) {
	db := openNew(t)
	put(t, db, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("check: error %v, want context.Canceled", err)
	}
	if _, err := db.Snapshot(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("snapshot: error %v, want context.Canceled", err)
	}
	if left, _ := filepath.Glob(db.Path() + ".*.tmp"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
