package runner

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/strictjson"
	"molrun/app/job/eta"
	"molrun/app/test/must"
)

func TestImpossibleJobFails(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for i := range 40 { // more than one scan looks at
			w.submit(ann, fmt.Sprint("big", i), `{"gpus":2}`)
		}
		w.submit(ann, "small", `{}`)
		w.executor.capacity.GPUs = []string{"GPU-a"} // the other device has been removed since
		w.start()
		f := w.finished("big39").Failure
		if f == nil || f.Code != app.FailedCannotStart || !strings.Contains(f.Message, "2 GPUs") || !strings.Contains(f.Message, "has 1 GPU ") {
			t.Errorf("failure %+v", f)
		}
		if s := w.finished("small").Status; s != app.Completed {
			t.Errorf("the small job is %s", s)
		}
	})
}

func TestWaitingJobsShowAReason(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(name string, _ int) script {
			if name == "held" {
				return script{waits: time.Hour, why: "the node is being cleaned", cause: app.CauseDone}
			}
			return script{runs: time.Hour, cause: app.CauseDone}
		})
		w.start()
		w.submit(ann, "held", `{}`)
		w.submit(ann, "gpus", `{"gpus":2}`)
		w.submit(ann, "next", `{"gpus":1}`)
		time.Sleep(2 * time.Second)
		want := map[string]string{"held": "the node is being cleaned", "gpus": "", "next": "waiting for 1 GPU"}
		for name, reason := range want {
			if got := w.job(name).StatusReason; got != reason {
				t.Errorf("%s: reason %q, want %q", name, got, reason)
			}
		}
	})
}

func TestManyJobsOfOneUserDoNotDelayAnother(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		body, err := strictjson.Parse([]byte(`{"rows":[` + strings.Repeat(`{},`, 499) + `{}]}`))
		must.OK(t, err)
		_, _, err = w.Jobs.SubmitBatch(t.Context(), ann, app.BatchSubmission{
			Name: "many", Type: "sim", Rows: body.Member("rows").Items, Body: body,
		})
		must.OK(t, err)
		w.play(func(name string, _ int) script { // so that they end one by one
			n, _ := strconv.Atoi(strings.TrimPrefix(name, "many-"))
			return script{runs: time.Duration(n) * time.Minute, cause: app.CauseDone}
		})
		stop := w.start()
		w.until("many-4", app.Running)
		id := w.submit(bob, "only", `{}`)
		w.finished("only")
		stop()
		if got := w.executor.order[4]; got != id {
			t.Errorf("the fifth job to start is %s, want bob's %s", got, id)
		}
	})
}

func TestLargeJobIsNotStarved(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		for i := range 4 {
			w.submit(bob, fmt.Sprint("first", i), `{}`)
			time.Sleep(15 * time.Second)
		}
		w.submit(ann, "whole", `{"cpus":4}`)
		begin := time.Now()
		for i := 0; w.job("whole").Status == app.Queued && i < 400; i++ { // there is always a small job
			w.submit(bob, fmt.Sprint("small", i), `{}`)
			time.Sleep(15 * time.Second)
		}
		if waited := time.Since(begin); waited < 10*time.Minute || waited > 12*time.Minute {
			t.Errorf("the large job waited %v, want ten minutes plus the time until the others end", waited)
		}
	})
}

func TestClusterAcceptsAFewJobsAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.executor.bounded = false
		w.play(func(string, int) script { return script{waits: time.Minute, runs: time.Minute, cause: app.CauseDone} })
		body, err := strictjson.Parse([]byte(`{"rows":[` + strings.Repeat(`{"cpus":4},`, 79) + `{}]}`))
		must.OK(t, err)
		_, _, err = w.Jobs.SubmitBatch(t.Context(), ann, app.BatchSubmission{Name: "many", Type: "sim", Rows: body.Member("rows").Items, Body: body})
		must.OK(t, err)
		w.start()
		w.finished("many")
		if n := len(w.executor.order); n != 80 {
			t.Errorf("%d tasks, want 80", n)
		}
		if s := w.job("many").Status; s != app.Completed {
			t.Errorf("the batch is %s", s)
		}
	})
}

// gauge reports the disk space that a test sets.
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
		time.Sleep(2 * time.Hour) // a running job goes on to its end
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

func TestImpossibleJobFailsOnAFullDisk(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.options.Blocked = func() eta.Reason { return eta.Reason{Text: "waiting for free disk space"} }
		w.submit(ann, "a", `{"gpus":2}`) // accepted; then a device is removed
		w.executor.capacity.GPUs = w.executor.capacity.GPUs[:1]
		w.start()
		if f := w.finished("a").Failure; f.Code != app.FailedCannotStart {
			t.Errorf("failure %+v", f)
		}
	})
}
