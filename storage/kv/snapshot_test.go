package kv

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"molrun/app/test/must"
)

func TestSnapshotIsOneStateWhileOthersWrite(t *testing.T) {
	db := openNew(t)
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				// Each update puts two things, so a consistent state never has only one
				// of them.
				_ = db.Update(ctx, func(tx *Tx) error {
					return errors.Join(putThing(tx, w*100_000+2*n), putThing(tx, w*100_000+2*n+1))
				})
			}
		})
	}
	defer writers.Wait()
	defer cancel()
	last := 0
	for range 10 {
		path, err := db.Snapshot(t.Context())
		must.OK(t, err)
		r, err := OpenReadOnly(path, schemaWith())
		must.OK(t, err)
		report, err := r.Check(t.Context())
		must.OK(t, err)
		n := report.Entries[bucketThings]
		if report.Count > 0 || n%2 != 0 || n < last {
			t.Errorf("a snapshot after one of %d things: %+v", last, report)
		}
		last = n
		must.OK(t, errors.Join(r.Close(), os.Remove(path)))
	}
}

func TestReadOnlyWritesNothing(t *testing.T) {
	path := withThings(t, 1)
	before, _ := os.ReadFile(path)
	r, err := OpenReadOnly(path, schemaWith())
	must.OK(t, err)
	if report, err := r.Check(t.Context()); err != nil || report.Entries[bucketThings] != 1 || report.Count > 0 {
		t.Errorf("check: %+v, %v", report, err)
	}
	must.OK(t, r.Close())
	if after, _ := os.ReadFile(path); !bytes.Equal(after, before) {
		t.Error("reading has changed the file")
	}
}
