package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/test/must"
)

func TestNoteThatCannotBeReadIsNotOver(t *testing.T) {
	dir := t.TempDir()
	const id = "01KA000000000000000000000A"
	must.OK(t, os.MkdirAll(filepath.Join(dir, id+".1"), 0o700)) // a directory instead of a note
	r := retained{dir: dir, keep: time.Hour, now: time.Now, jobs: nothingClaimed{}}
	if notes, err := r.notes(t.Context()); len(notes) != 0 || err != nil {
		t.Errorf("notes %v, %v; want none", notes, err)
	}
	if _, ok := readNote(filepath.Join(dir, "none")); ok {
		t.Error("a note that is missing was read")
	}
}

// counting counts the reads of the queue, and fails the first ones.
type counting struct {
	Jobs
	reads, refusals atomic.Int64
}

func (c *counting) Queue(ctx context.Context, executor string, visit func(app.Waiting) app.Visit) error {
	c.reads.Add(1)
	if c.refusals.Add(-1) >= 0 {
		return errors.New("could not read the queue")
	}
	return c.Jobs.Queue(ctx, executor, visit)
}

// A failed read of the queue is retried soon. After a successful read, the queue is read
// no more often than usual.
func TestQueueThatCannotBeReadIsReadAgainSoon(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		jobs := &counting{Jobs: w.jobs}
		jobs.refusals.Store(4)
		w.jobs = jobs
		w.submit(ann, "a", `{}`)
		w.start()
		time.Sleep(6 * scanEvery)
		if n := w.executor.count(); n != 1 {
			t.Errorf("%d tasks started after %d reads, want 1", n, jobs.reads.Load())
		}
		time.Sleep(10 * time.Minute)
		before := jobs.reads.Load()
		time.Sleep(time.Hour)
		if n, most := jobs.reads.Load()-before, int64(time.Hour/roundEvery)+1; n > most {
			t.Errorf("it reads the queue %d times an hour, want %d at most", n, most)
		}
	})
}
