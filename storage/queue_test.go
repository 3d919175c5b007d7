package storage

import (
	"bytes"
	"errors"
	"testing"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/job/eta"
	"molrun/app/test/must"
	"molrun/storage/kv"
)

// FuzzReadWaiting checks that damaged entries cause an error at most.
func FuzzReadWaiting(f *testing.F) {
	e := jobQueue(testID(1), testJob(1))[0]
	f.Add([]byte(e.Key), e.Value)
	f.Add([]byte(e.Key[:20]), e.Value[:1])
	f.Fuzz(func(t *testing.T, k, value []byte) {
		w, err := readWaiting(k, value)
		if err != nil {
			return
		}
		again := kv.Key{}.Priority(w.Priority).Text(w.Organization).Text(w.Email)
		if !bytes.HasPrefix(k, again) {
			t.Errorf("key %x reads as %+v", k, w)
		}
	})
}

func TestNeedsAndWorkOfAWaitingJobRoundTrip(t *testing.T) {
	for _, want := range []placement.Resources{
		{},
		{CPUs: 1, MemoryBytes: 1 << 50, GPUs: 8},
		{CPUs: -1, MemoryBytes: -1 << 63, GPUs: 1<<63 - 1},
	} {
		if got, rest, err := readResources(appendResources(nil, want)); err != nil || got != want || len(rest) > 0 {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	for _, want := range []eta.Work{{}, {Class: "a 1 local"}, {Class: "a 1 local", Size: 1.5e9}} {
		if got, err := readWork(appendWork(nil, want)); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	if w, err := readWork(make([]byte, 7)); err == nil {
		t.Errorf("half a size reads as %+v", w)
	}
}

// Every second visit claims its job, which removes it from the queue.
func TestClaimDuringAWalkOfTheQueue(t *testing.T) {
	s := openNew(t)
	putJobs(t, s, testJobs(200)...)
	visits := func(tx app.Tx, visit func(n int, id app.JobID)) {
		t.Helper()
		n := 0
		must.OK(t, tx.Queue("local", func(w app.Waiting) app.Visit {
			visit(n, w.ID)
			n++
			return app.NextJob
		}))
	}
	visited, left := 0, 0
	update(t, s, func(tx app.Tx) error {
		visits(tx, func(n int, id app.JobID) {
			if visited = n + 1; id != jobID(n) {
				t.Errorf("visit %d is of %s, want %s", n, id, jobID(n))
			}
			if n%2 == 0 {
				j, err := tx.Job(id)
				must.OK(t, err)
				j.Private.Claimed = true
				must.OK(t, tx.PutJob(j))
			}
		})
		return nil
	})
	view(t, s, func(tx app.Tx) error {
		visits(tx, func(int, app.JobID) { left++ })
		return nil
	})
	if visited != 200 || left != 100 {
		t.Errorf("%d were visited and %d left, want 200 and 100", visited, left)
	}
}

func TestRunsAreTheLastOfTheirClass(t *testing.T) {
	s := openNew(t)
	const more = eta.MaxRuns + 5
	for i := range more {
		update(t, s, func(tx app.Tx) error {
			return errors.Join(tx.AddRun("a", eta.Run{Size: float64(i), Seconds: float64(2 * i)}), tx.AddRun("b", eta.Run{Seconds: 0.5}))
		})
	}
	view(t, s, func(tx app.Tx) error {
		runs, err := tx.Runs("a")
		if err != nil || len(runs) != eta.MaxRuns || runs[0] != (eta.Run{Size: 5, Seconds: 10}) || runs[len(runs)-1] != (eta.Run{Size: more - 1, Seconds: 2 * (more - 1)}) {
			t.Errorf("runs of a: %v, %v", runs, err)
		}
		if runs, err := tx.Runs("c"); err != nil || len(runs) != 0 {
			t.Errorf("runs of c: %v, %v", runs, err)
		}
		return nil
	})
}
