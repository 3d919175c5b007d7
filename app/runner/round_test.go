package runner

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/job/eta"
	"molrun/app/test/must"
)

// Impossible jobs fail even while no job can start.
func TestImpossibleJobFails(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		disk := &gauge{why: "waiting for free disk space"}
		w.options.Blocked = func() eta.Reason { return eta.Reason{Text: disk.shortage()} }
		for i := range 40 { // more than one scan considers
			w.submit(ann, fmt.Sprint("big", i), `{"gpus":2}`)
		}
		w.submit(ann, "small", `{}`)
		w.executor.capacity.GPUs = []string{"GPU-a"} // the other GPU has been removed in the meantime
		w.start()
		f := w.finished("big39").Failure
		if f == nil || f.Code != app.FailedCannotStart || !strings.Contains(f.Message, "2 GPUs") || !strings.Contains(f.Message, "has only 1 GPU ") {
			t.Errorf("failure %+v", f)
		}
		disk.set("")
		must.Equal(t, "the small job", w.finished("small").Status, app.Completed)
	})
}

// gauge reports the disk shortage set by a test.
type gauge struct {
	mu  sync.Mutex
	why string
}

func (g *gauge) set(why string) {
	g.mu.Lock()
	g.why = why
	g.mu.Unlock()
}

func (g *gauge) shortage() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.why
}

func TestJobsWaitForDiskSpace(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		disk := &gauge{}
		w.options.Blocked = func() eta.Reason { return eta.Reason{Text: disk.shortage()} }
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
		time.Sleep(2 * time.Hour) // a running job continues to its end
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
				t.Errorf("with free space again: %s, reason %q", r.Status, r.StatusReason)
			}
		}
	})
}
