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

// learn runs a job for each number of steps, a second for each step.
func (w *world) learn(steps ...int) {
	w.t.Helper()
	for i, n := range steps {
		name := fmt.Sprintf("past%d-%d", n, i)
		w.submit(ann, name, fmt.Sprintf(`{"steps":%d}`, n))
		w.finished(name)
	}
}

// bySteps plays tasks whose name ends in the number of seconds that they run.
func bySteps(name string, _ int) script {
	seconds := 0
	for _, c := range name {
		if c >= '0' && c <= '9' {
			seconds = 10*seconds + int(c-'0')
		} else if seconds > 0 {
			break
		}
	}
	return script{runs: time.Duration(seconds) * time.Second, cause: app.CauseDone}
}

func (w *world) wantLeft(name string, seconds, within int64, basis string) {
	w.t.Helper()
	r := w.job(name)
	if r.Left == nil || *r.Left < seconds-within || *r.Left > seconds+within || r.Basis != basis {
		left := "unknown"
		if r.Left != nil {
			left = fmt.Sprint(*r.Left)
		}
		w.t.Errorf("%s runs for another %s s by %q, want %d by %q", name, left, r.Basis, seconds, basis)
	}
}

func TestRunningJobSaysHowLongItStillRuns(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(bySteps)
		w.start()
		w.learn(60, 120)
		w.submit(ann, "new600", `{"steps":600}`)
		w.until("new600", app.Running)
		if r := w.job("new600"); r.Left != nil || r.Basis != "" {
			t.Errorf("by two runs: %d s, %q", *r.Left, r.Basis)
		}
		w.learn(240)
		w.submit(ann, "next1200", `{"steps":1200}`)
		w.until("next1200", app.Running)
		w.wantLeft("next1200", 1200, 2, "3 runs of sim 1")
		time.Sleep(10 * time.Second)
		w.wantLeft("next1200", 1190, 2, "3 runs of sim 1")
		time.Sleep(290 * time.Second)
		w.wantLeft("next1200", 900, 2, "progress")
		w.finished("next1200")
		if r := w.job("next1200"); r.Left != nil {
			t.Errorf("a completed job still runs for %d s", *r.Left)
		}
	})
}

func TestRestartedServiceKnowsHowLongJobsStillRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(bySteps)
		stop := w.start()
		w.learn(100, 200, 400)
		w.submit(ann, "new1000", `{"steps":1000}`)
		w.until("new1000", app.Running)
		stop()
		w.Service = w.service(simFile)
		w.jobs = w.Service.Runs
		w.start()
		time.Sleep(5 * time.Second)
		w.wantLeft("new1000", 995, 3, "3 runs of sim 1")
	})
}

// Jobs that fail, or that a second attempt may have continued, tell nothing.
func TestOnlyCompletedFirstAttemptsAreHistory(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(name string, attempt int) script {
			s := script{runs: time.Minute, cause: app.CauseDone}
			switch {
			case name[0] == 'f':
				s.cause, s.exitCode = app.CauseExit, 1
			case name[0] == 'l' && attempt == 1:
				s.cause = ""
			}
			return s
		})
		w.start()
		for i := range 3 {
			for _, kind := range []string{"fails", "lost"} {
				name := fmt.Sprint(kind, i)
				w.submit(ann, name, `{}`)
				w.finished(name)
			}
		}
		w.submit(ann, "new", `{}`)
		w.until("new", app.Running)
		if r := w.job("new"); r.Left != nil {
			t.Errorf("by failed and repeated jobs: %d s, %q", *r.Left, r.Basis)
		}
	})
}
