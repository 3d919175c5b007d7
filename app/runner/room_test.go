package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app"
)

// gauge is a disk that a test fills.
type gauge struct {
	mu  sync.Mutex
	why string
}

func (g *gauge) set(why string) {
	g.mu.Lock()
	g.why = why
	g.mu.Unlock()
}

func (g *gauge) room() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.why
}

func TestJobsWaitForDiskSpace(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		disk := &gauge{}
		w.options.DiskShortage = disk.room
		w.play(func(string, int) script { return script{runs: time.Hour, cause: app.CauseDone} })
		w.start()
		running := w.submit(ann, "running", `{}`)
		w.until("running", app.Running)

		const why = "waiting for free disk space: 900.0 MiB are free, 1.0 GiB is kept free"
		disk.set(why)
		var waiting []app.JobID
		for i := range 3 {
			waiting = append(waiting, w.submit(ann, fmt.Sprint("waiting", i), `{}`))
		}
		time.Sleep(2 * time.Hour) // what runs goes on to its end
		if r := w.job("running"); r.Status != app.Completed || w.executor.started(running) != 1 {
			t.Errorf("the job that ran is %s", r.Status)
		}
		for i, id := range waiting {
			if r := w.job(fmt.Sprint("waiting", i)); r.Status != app.Queued || r.StatusReason != why || w.executor.started(id) != 0 {
				t.Errorf("on a full disk: %s, reason %q", r.Status, r.StatusReason)
			}
		}
		disk.set("")
		time.Sleep(2 * scanEvery)
		for i := range waiting {
			if r := w.job(fmt.Sprint("waiting", i)); r.Status != app.Running || r.StatusReason != "" {
				t.Errorf("with room again: %s, reason %q", r.Status, r.StatusReason)
			}
		}
	})
}

func TestImpossibleJobFailsOnAFullDisk(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.options.DiskShortage = func() string { return "waiting for free disk space" }
		w.submit(ann, "a", `{"gpus":2}`) // admitted; then a device is taken out
		w.executor.capacity.GPUs = w.executor.capacity.GPUs[:1]
		w.start()
		if f := w.finished("a").Failure; f.Code != app.FailedCannotStart {
			t.Errorf("failure %+v", f)
		}
	})
}

// deadAtTheEnd is a service that never hears of an end: the runner's process
// dies just before it records one.
type deadAtTheEnd struct {
	Jobs
	died chan struct{}
	once sync.Once
}

func (d *deadAtTheEnd) Finish(context.Context, app.JobID, int, app.Ending) error {
	d.once.Do(func() { close(d.died) })
	return errDead
}

// TestEndIsRecordedBeforeFilesAreRemoved is about a crash between the two: whoever
// settles the attempt afterwards has to find the same.
func TestEndIsRecordedBeforeFilesAreRemoved(t *testing.T) {
	for name, keep := range map[string]time.Duration{"nothing is kept": 0, "kept": time.Hour} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.options.KeepFailed, w.options.MaxFiles = keep, 2
				w.play(func(string, int) script {
					return script{runs: time.Minute, cause: app.CauseDone, out: map[string]string{"a": "", "b": "", "c": ""}}
				})
				dying := &deadAtTheEnd{Jobs: w.Service.Runs, died: make(chan struct{})}
				w.jobs = dying
				stop := w.start()
				id := w.submit(ann, "a", `{}`)
				<-dying.died
				stop()
				if _, err := os.Stat(w.path(id, "1", "work", "out", "c")); err != nil {
					t.Fatalf("what the attempt left is gone before its end is recorded: %v", err)
				}

				w.jobs = w.Service.Runs
				w.start()
				if r := w.finished("a"); r.Status != app.Failed || r.Failure.Code != app.FailedExit || r.Attempts != 1 {
					t.Errorf("after the restart: %s, failure %+v, attempt %d; want the failure that was found", r.Status, r.Failure, r.Attempts)
				}
				time.Sleep(keep + sweepEvery)
				synctest.Wait()
				if _, err := os.Stat(w.path(id, "1", "work")); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the work directory stays: %v", err)
				}
				if notes, err := os.ReadDir(w.options.RetainedDir); err != nil || len(notes) != 0 {
					t.Errorf("notes left: %v, %v", notes, err)
				}
			})
		})
	}
}

// deadAfterTheEnd is a service whose answer to an end is never heard: the
// runner's process dies just after it has recorded one.
type deadAfterTheEnd struct {
	Jobs
	stop context.CancelFunc
}

func (d *deadAfterTheEnd) Finish(ctx context.Context, id app.JobID, attempt int, e app.Ending) error {
	if err := d.Jobs.Finish(ctx, id, attempt, e); err != nil {
		return err
	}
	d.stop()
	return errDead
}

func TestNextRunnerRemovesAWorkDirectoryLeftByACrash(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.options.KeepFailed = 0
		w.play(func(string, int) script { return script{cause: app.CauseExit} })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		dying := New(&deadAfterTheEnd{w.Service.Runs, cancel}, w.files, []app.Executor{w.executor}, w.options)
		id := w.submit(ann, "a", `{}`)
		must(t, dying.Run(ctx))
		if s := w.job("a").Status; s != app.Failed {
			t.Fatalf("status %s", s)
		}
		if _, err := os.Stat(w.path(id, "1", "work")); err != nil {
			t.Fatalf("the crash came too late: %v", err)
		}
		w.start()
		synctest.Wait()
		if _, err := os.Stat(w.path(id, "1", "work")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the work directory stays: %v", err)
		}
	})
}
