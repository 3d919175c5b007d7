package runner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app"
	"molrun/app/base/strictjson"
	"molrun/app/job/eta"
	"molrun/app/test/must"
)

// lookAhead is the time after a change until every record shows its job's queue position.
const lookAhead = 3 * scanEvery

// queueOf returns the queue information in the record of a queued job.
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
		w.wantQueue(map[string]eta.Queue{ // ann runs one job
			"b1": {Position: 1, Of: 5, BlockedBy: eta.CPU},
			"b2": {Position: 3, Of: 5, BlockedBy: eta.CPU},
			"a1": {Position: 2, Of: 5, BlockedBy: eta.CPU},
			"a2": {Position: 4, Of: 5, BlockedBy: eta.CPU},
			"a3": {Position: 5, Of: 5, BlockedBy: eta.CPU},
		})
		if got, want := w.job("b1").StatusReason, "waiting for 2 CPUs"; got != want {
			t.Errorf("b1 waits for the reason %q, want %q", got, want)
		}
		if r := w.job("a0"); r.Queue != (eta.Queue{}) {
			t.Errorf("a running job has the queue %+v", r.Queue)
		}
		_, err := w.Jobs.Cancel(t.Context(), ann, "a1")
		must.OK(t, err)
		time.Sleep(lookAhead)
		w.wantQueue(map[string]eta.Queue{"a2": {Position: 2, Of: 4, BlockedBy: eta.CPU}, "b2": {Position: 3, Of: 4, BlockedBy: eta.CPU}})
	})
}

// A round considers only a few jobs of each user.
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
		w.play(bySteps)
		w.start()
		w.learn(60, 120, 240) // without the drain, starts could be forecast
		_, err := w.Runs.Drain(t.Context(), app.Caller{Operator: true, Email: "root"}, "new disks")
		must.OK(t, err)
		const n = 40
		for i := range n {
			w.submit(ann, fmt.Sprint("job", i), `{"steps":1}`)
		}
		time.Sleep(lookAhead)
		first, last := w.job("job0"), w.job(fmt.Sprint("job", n-1))
		same := first.StatusReason == last.StatusReason && first.StatusReason != ""
		if want := (eta.Queue{Position: n, Of: n, BlockedBy: eta.Drain}); last.Queue != want || first.Queue.BlockedBy != eta.Drain || !same {
			t.Errorf("the last waits as %+v: %s; want %+v. The first as %+v: %s", last.Queue, last.StatusReason, want, first.Queue, first.StatusReason)
		}
		must.OK(t, w.Runs.Resume(t.Context(), app.Caller{Operator: true, Email: "root"}))
		w.until(fmt.Sprint("job", n-1), app.Running, app.Completed)
	})
}

// learn runs a job for each number of steps, one second per step.
func (w *world) learn(steps ...int) {
	w.t.Helper()
	for i, n := range steps {
		name := fmt.Sprintf("past%d-%d", n, i)
		w.submit(ann, name, fmt.Sprintf(`{"steps":%d}`, n))
		w.finished(name)
	}
}

// bySteps returns the script of a task whose name ends in its run time in seconds.
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
	synctest.Wait() // known shortly after the job's record shows that it runs
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
		w.play(func(name string, attempt int) script {
			s := bySteps(name, attempt)
			switch {
			case strings.HasPrefix(name, "fails"):
				s.cause, s.exitCode = app.CauseExit, 1
			case strings.HasPrefix(name, "lost") && attempt == 1:
				s.cause = ""
			}
			return s
		})
		stop := w.start()
		w.learn(60, 120)
		for i := range 3 { // failed and lost runs must not count
			for _, kind := range []string{"fails", "lost"} {
				name := fmt.Sprintf("%s60-%d", kind, i)
				w.submit(ann, name, `{"steps":60}`)
				w.finished(name)
			}
		}
		w.submit(ann, "new600", `{"steps":600}`)
		w.until("new600", app.Running)
		if r := w.job("new600"); r.Left != nil || r.Basis != "" {
			t.Errorf("by two runs, and jobs that failed or were tried again: %d s, %q", *r.Left, r.Basis)
		}
		w.learn(240)
		w.submit(ann, "next1200", `{"steps":1200}`)
		w.until("next1200", app.Running)
		w.wantLeft("next1200", 1200, 2, "3 runs of sim 1")
		stop()
		w.Service = w.service(simFile) // the history survives a restart of the service
		w.jobs = w.Service.Runs
		w.start()
		time.Sleep(10 * time.Second)
		w.wantLeft("next1200", 1190, 3, "3 runs of sim 1")
		time.Sleep(290 * time.Second)
		w.wantLeft("next1200", 900, 2, "progress")
		w.finished("next1200")
		if r := w.job("next1200"); r.Left != nil {
			t.Errorf("a completed job still runs for %d s", *r.Left)
		}
	})
}

// TestNothingFollowsFromCountedSteps runs a job at half the usual speed that reports its
// progress in steps. The remaining time must still come from earlier runs.
func TestNothingFollowsFromCountedSteps(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(name string, n int) script {
			s := bySteps(name, n)
			s.basis = "steps"
			return s
		})
		w.start()
		w.learn(60, 120, 240)
		w.submit(ann, "next1200", `{"steps":600}`)
		w.until("next1200", app.Running)
		time.Sleep(300 * time.Second)
		w.wantLeft("next1200", 300, 2, "3 runs of sim 1")
		if p := w.job("next1200").Progress; p == nil || p.Fraction < 0.2 || p.Basis != "steps" {
			t.Errorf("progress %+v", p)
		}
	})
}

// TestForecastStartsMatchActualStarts compares the forecast start of each job with its actual
// start, for a mixed queue of three users.
func TestForecastStartsMatchActualStarts(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(bySteps)
		w.start()
		w.learn(60, 120, 240)
		for i := range 3 {
			name := fmt.Sprintf("gpu60-%d", i)
			w.submit(ann, name, `{"steps":60,"gpus":1}`)
			w.finished(name)
		}
		r := rand.New(rand.NewPCG(3, 3))
		var names []string
		for i := range 40 {
			steps := 100 + r.IntN(900)
			name := fmt.Sprintf("j%d-%d", steps, i)
			by := []app.Caller{ann, bob, chief}[r.IntN(3)]
			w.submit(by, name, fmt.Sprintf(`{"steps":%d,"cpus":%d,"gpus":%d}`, steps, 1+r.IntN(4), r.IntN(2)))
			names = append(names, name)
		}
		time.Sleep(30 * time.Second) // until running jobs show their progress
		begin := time.Now()
		foreseen := map[string]int64{}
		for _, name := range names {
			if r := w.job(name); r.Status == app.Queued {
				if foreseen[name] = r.Queue.ETASeconds; r.Queue.ETASeconds == 0 {
					t.Errorf("%s has no ETA: %+v", name, r.Queue)
				}
				if want := "progress and past runs of the jobs before it"; r.Queue.ETABasis != want && r.Queue.ETABasis != "progress of the jobs before it" {
					t.Errorf("the basis of %s is %q, want %q", name, r.Queue.ETABasis, want)
				}
			}
		}
		if len(foreseen) < 30 {
			t.Fatalf("%d jobs wait", len(foreseen))
		}
		for name, eta := range foreseen {
			started := w.finished(name).StartedAt.Sub(begin).Seconds()
			if math.Abs(started-float64(eta)) > 20+0.02*started {
				t.Errorf("%s started after %.0f s, forecast %d s", name, started, eta)
			}
		}
	})
}

// A job of unknown length hides the start times of the jobs behind it, but not its own.
func TestNoStartIsForeseenBehindWhatIsUnknown(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(bySteps)
		w.start()
		w.learn(60, 120, 240)
		w.submit(ann, "runs1000", `{"steps":1000,"cpus":4}`)
		w.until("runs1000", app.Running)
		w.submit(ann, "known500", `{"steps":500,"cpus":4}`)
		w.submit(ann, "unknown300", `{"cpus":4}`) // its size is unknown
		w.submit(ann, "behind100", `{"steps":100,"cpus":4}`)
		time.Sleep(10 * time.Second)
		for name, want := range map[string]int64{"known500": 990, "unknown300": 1490, "behind100": 0} {
			if q := w.queueOf(name); q.ETASeconds < want-5 || q.ETASeconds > want+5 || (q.ETABasis == "") != (want == 0) {
				t.Errorf("%s: %+v, want %d s", name, q, want)
			}
		}
		if q := w.queueOf("known500"); q.ETABasis != "3 runs of sim 1" {
			t.Errorf("basis %q", q.ETABasis)
		}
	})
}

// TestEstimateComesTrue requests an estimate for a batch while other jobs run and wait,
// and compares it with the actual times after the batch is submitted.
func TestEstimateComesTrue(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(bySteps)
		w.start()
		w.learn(60, 120, 240)
		for i, steps := range []int{310, 470, 620, 530, 215} {
			w.submit(ann, fmt.Sprintf("j%d-%d", steps, i), fmt.Sprintf(`{"steps":%d,"cpus":%d}`, steps, 1+i%3))
		}
		time.Sleep(20 * time.Second)
		rows := `[{"steps":333,"cpus":2},{"steps":101,"cpus":1},{"steps":707,"cpus":4}]`
		body, err := strictjson.Parse([]byte(rows))
		must.OK(t, err)
		batch := app.BatchSubmission{Name: "b", Type: "sim", Rows: body.Items, RowNames: []string{"b333", "b101", "b707"}, Body: body}
		plan := func(p app.Planner) (*app.Planned, error) { return p.Batch(t.Context(), bob, batch) }
		est, err := app.NewEstimates(w.Jobs, w.Runs).Of(t.Context(), plan)
		must.OK(t, err)
		begin := time.Now()
		must.OK(t, must.Error3(w.Jobs.SubmitBatch(t.Context(), bob, batch)))
		first, last := w.finished("b333").StartedAt.Sub(begin), time.Duration(0)
		for _, name := range []string{"b333", "b101", "b707"} {
			r := w.finished(name)
			first, last = min(first, r.StartedAt.Sub(begin)), max(last, r.CompletedAt.Sub(begin))
		}
		near := func(what string, got int64, want time.Duration) {
			if math.Abs(float64(got)-want.Seconds()) > 10+0.02*want.Seconds() {
				t.Errorf("%s: forecast %d s, actual %v", what, got, want)
			}
		}
		near("the first start", est.Queue.ETASeconds, first)
		near("the last end", est.EndSeconds, last)
		near("the longest run", est.RunSeconds, 707*time.Second)
		if est.Queue.Position != 1 || est.RunBasis != "7 runs of sim 1" && est.RunBasis != "3 runs of sim 1" || len(est.Slots) != 3 {
			t.Errorf("estimate %+v, queue %+v", est, est.Queue)
		}
		if again, err := app.NewEstimates(w.Jobs, w.Runs).Of(t.Context(), plan); err != nil || again.Queue.ETASeconds != 1 || again.EndSeconds < 707 {
			t.Errorf("of a free machine: %+v, %v", again, err)
		}
	})
}
