package runner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app"
	"molrun/app/runner/schedule"
	"molrun/app/test/must"
)

func TestNoteThatCannotBeReadIsNotOver(t *testing.T) {
	dir := t.TempDir()
	const id = "01KA000000000000000000000A"
	must.OK(t, os.MkdirAll(filepath.Join(dir, id+".1"), 0o700)) // no file
	r := retained{dir: dir, keep: time.Hour, now: time.Now, jobs: nothingClaimed{}}
	if notes, err := r.notes(t.Context()); len(notes) != 0 || err != nil {
		t.Errorf("notes %v, %v; want none", notes, err)
	}
	if _, ok := readNote(filepath.Join(dir, "none")); ok {
		t.Error("a note that is missing was read")
	}
}

func TestNoteIsOverAfterItsTime(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 40, 0, 0, time.UTC)
	r := retained{dir: t.TempDir(), keep: time.Hour, now: func() time.Time { return at }}
	path := filepath.Join(r.dir, "note")
	must.OK(t, r.stamp(path, true))
	n, ok := readNote(path)
	if !ok || !n.forSpace {
		t.Errorf("note %+v, %v; want one for lack of space", n, ok)
	}
	for after, over := range map[time.Duration]bool{0: false, time.Hour - time.Second: false, time.Hour: true, 2 * time.Hour: true} {
		r.now = func() time.Time { return at.Add(after) }
		if got := r.over(n); got != over {
			t.Errorf("after %v: %v, want %v", after, got, over)
		}
	}
}

func TestDirectoryThatCannotBeFilledIsAnError(t *testing.T) {
	l := layout{dir: filepath.Join(t.TempDir(), "none"), jobDir: t.TempDir(), job: &app.Job{}, lease: schedule.Lease{}, options: &Options{}}
	if err := l.fill(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want that the directory does not exist", err)
	}
}

// loses is an executor whose tasks are lost while they are stopped.
type loses struct{ *scripted }

func (l loses) Stop(_ context.Context, t app.Task) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.tasks[t.Token]; p != nil {
		p.end, p.cause = time.Now(), ""
	}
	return nil
}

// TestStoppedJobIsNotTriedAgain has a job with retries that is lost while it is
// stopped. Nothing is retained for another attempt.
func TestStoppedJobIsNotTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.options.KeepFailed = 0
		w.front = loses{w.executor}
		w.play(func(string, int) script { return script{runs: time.Hour, cause: app.CauseDone} })
		w.start()
		id := w.submit(ann, "a", `{}`)
		w.until("a", app.Running)
		_, err := w.Jobs.Cancel(t.Context(), ann, "a")
		must.OK(t, err)
		r := w.finished("a")
		synctest.Wait()
		if r.Failure == nil || r.Failure.Code != app.FailedStopped || w.executor.started(id) != 1 {
			t.Errorf("record %+v after %d tasks, want it stopped", r.Job, w.executor.started(id))
		}
		if _, err := os.Stat(w.path(id, "1", "work")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the work directory is still there: %v", err)
		}
	})
}

// counting counts how often the queue is read, and refuses it at first.
type counting struct {
	Jobs
	reads, refusals atomic.Int64
}

func (c *counting) Queue(ctx context.Context, executor string, visit func(app.Waiting) app.Visit) error {
	c.reads.Add(1)
	if c.refusals.Add(-1) >= 0 {
		return errors.New("the queue can't be read")
	}
	return c.Jobs.Queue(ctx, executor, visit)
}

// A queue that can't be read is read again soon, and once it can be, no more often than
// before.
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
