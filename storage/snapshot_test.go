package storage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"molrun/app"
	"molrun/app/fault"
)

func TestSnapshotIsOneStateWhileOthersWrite(t *testing.T) {
	s := openNew(t)
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				// Two jobs at once: a state with one of them is none.
				_ = s.Update(ctx, func(tx app.Tx) error {
					return errors.Join(tx.PutJob(testJob(w*100_000+2*n)), tx.PutJob(testJob(w*100_000+2*n+1)))
				})
			}
		})
	}
	defer writers.Wait()
	defer cancel()
	last := 0
	for range 10 {
		path, err := s.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r, err := OpenReadOnly(path)
		if err != nil {
			t.Fatal(err)
		}
		report, err := r.Check(t.Context())
		if err != nil || report.Count > 0 || report.Jobs%2 != 0 || report.Jobs < last {
			t.Errorf("a snapshot after one of %d jobs: %+v, %v", last, report, err)
		}
		last = report.Jobs
		if err := errors.Join(r.Close(), os.Remove(path)); err != nil {
			t.Error(err)
		}
	}
}

func TestSnapshotEndsWithItsContextAndLeavesNothing(t *testing.T) {
	s := openNew(t)
	putJobs(t, s, testJob(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Snapshot(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if left, _ := filepath.Glob(s.db.Path() + ".*.tmp"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestReadOnlyKeepsAStoreFromOpeningAndWritesNothing(t *testing.T) {
	t.Parallel() // it waits out the lock
	dir := t.TempDir()
	path := filepath.Join(dir, "jobs.db")
	s := openAt(t, path, Options{})
	putJobs(t, s, testJob(1))
	if _, err := OpenReadOnly(path); !errors.Is(err, fault.Unavailable) {
		t.Errorf("beside a store: %v", err)
	}
	closeStore(t, s)
	before, _ := os.ReadFile(path)
	r, err := OpenReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := Open(path, Options{}); !errors.Is(err, fault.Unavailable) {
		t.Error(errors.Join(errors.New("a store opened beside a reader"), err, s.Close()))
	}
	if report, err := r.Check(t.Context()); err != nil || report.Jobs != 1 || report.Count > 0 {
		t.Errorf("check: %+v, %v", report, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Error("reading has changed the file")
	}
}
