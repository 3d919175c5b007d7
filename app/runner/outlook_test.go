package runner

import (
	"fmt"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/eta"
)

// lookAhead is how long after a change every record says where its job stands.
const lookAhead = 3 * scanEvery

// queueOf returns what the record of a queued job says about the queue.
func (w *world) queueOf(name string) eta.Queue {
	w.t.Helper()
	r := w.job(name)
	if r.Status != app.Queued {
		w.t.Fatalf("%s is %s, want QUEUED", name, r.Status)
	}
	return r.Queue
}

func (w *world) wantQueue(want map[string]eta.Queue) {
	w.t.Helper()
	for name, q := range want {
		if got := w.queueOf(name); got != q {
			w.t.Errorf("the queue of %s is %+v, want %+v", name, got, q)
		}
	}
}

func TestRecordSaysWhereAJobStandsInTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(string, int) script { return script{runs: time.Hour, cause: app.CauseDone} })
		w.start()
		w.submit(ann, "a0", `{"cpus":3}`)
		w.until("a0", app.Running)
		for i := 1; i <= 3; i++ {
			w.submit(ann, fmt.Sprint("a", i), `{"cpus":2}`)
		}
		w.submit(bob, "b1", `{"cpus":2}`)
		w.submit(bob, "b2", `{"gpus":2,"cpus":4}`)
		time.Sleep(lookAhead)
		w.wantQueue(map[string]eta.Queue{ // ann runs one
			"b1": {Position: 1, Of: 5, BlockedBy: eta.CPU},
			"b2": {Position: 3, Of: 5, BlockedBy: eta.CPU},
			"a1": {Position: 2, Of: 5, BlockedBy: eta.CPU},
			"a2": {Position: 4, Of: 5, BlockedBy: eta.CPU},
			"a3": {Position: 5, Of: 5, BlockedBy: eta.CPU},
		})
		if r := w.job("a0"); r.Queue != (eta.Queue{}) {
			t.Errorf("a running job has the queue %+v", r.Queue)
		}
		_, err := w.Jobs.Cancel(t.Context(), ann, "a1")
		must(t, err)
		time.Sleep(lookAhead)
		w.wantQueue(map[string]eta.Queue{"a2": {Position: 2, Of: 4, BlockedBy: eta.CPU}, "b2": {Position: 3, Of: 4, BlockedBy: eta.CPU}})
	})
}

// A round looks at a few jobs of each user only.
func TestJobFarBehindKnowsItsPlace(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(string, int) script { return script{runs: time.Hour, cause: app.CauseDone} })
		w.start()
		w.submit(ann, "first", `{"cpus":4}`)
		w.until("first", app.Running)
		const n = 50
		for i := range n {
			w.submit(ann, fmt.Sprint("row", i), `{"cpus":4}`)
		}
		time.Sleep(lookAhead)
		last := fmt.Sprint("row", n-1)
		w.wantQueue(map[string]eta.Queue{last: {Position: n, Of: n, BlockedBy: eta.BatchOrder}})
		if r := w.job(last); r.StatusReason != "waiting for its turn" {
			t.Errorf("reason %q", r.StatusReason)
		}
	})
}

func TestDrainedServiceIsWhatBlocksEveryJob(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.options.Blocked = w.Runs.Blocked
		_, err := w.Runs.Drain(t.Context(), app.Caller{Operator: true, Email: "root"}, "new disks")
		must(t, err)
		const n = 40
		for i := range n {
			w.submit(ann, fmt.Sprint("job", i), `{}`)
		}
		w.start()
		time.Sleep(lookAhead)
		first, last := w.job("job0"), w.job(fmt.Sprint("job", n-1))
		same := first.StatusReason == last.StatusReason && first.StatusReason != ""
		if want := (eta.Queue{Position: n, Of: n, BlockedBy: eta.Drain}); last.Queue != want || first.Queue.BlockedBy != eta.Drain || !same {
			t.Errorf("the last waits as %+v: %s; want %+v. The first as %+v: %s", last.Queue, last.StatusReason, want, first.Queue, first.StatusReason)
		}
		must(t, w.Runs.Resume(t.Context(), app.Caller{Operator: true, Email: "root"}))
		w.until(fmt.Sprint("job", n-1), app.Running, app.Completed)
	})
}
