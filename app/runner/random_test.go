package runner

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/test/must"
)

// TestRandomRuns runs random jobs of random users, with random outcomes, on a
// runner that dies at random moments. Every job ends only once, as its scripts
// say. The executor checks that no two tasks of a job are alive at once, that
// none is started twice and that no more resources are in use than exist.
func TestRandomRuns(t *testing.T) {
	t.Parallel()
	seeds := uint64(100)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		bubble(t, func(t *testing.T, w *world) { randomRun(t, w, rand.New(rand.NewPCG(seed, 7))) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// expectation is a random job with its expected outcome.
type expectation struct {
	name    string
	scripts []script // of its attempts
	stop    bool
	final   app.Status
	finally app.Job // when it was first seen finished
}

func randomRun(t *testing.T, w *world, rng *rand.Rand) {
	wishes := map[string]*expectation{}
	w.play(func(name string, attempt int) script { return wishes[name].scripts[attempt-1] })
	for i := range 3 + rng.IntN(5) {
		x := randomWish(rng, fmt.Sprint("job", i))
		wishes[x.name] = x
		by := []app.Caller{ann, bob, chief}[rng.IntN(3)]
		settings := fmt.Sprintf(`{"cpus":%d,"gpus":%d}`, 1+rng.IntN(4), rng.IntN(3))
		w.submitWith(by, x.name, settings, min(0, rng.IntN(4)-2))
	}
	for range rng.IntN(4) {
		_, wait := w.startToCrash(1+rng.IntN(120), rng.IntN(2) == 0)
		time.Sleep(time.Duration(rng.IntN(20)) * time.Second)
		stopSome(t, w, wishes)
		wait()
	}
	w.start()
	time.Sleep(time.Second)
	stopSome(t, w, wishes)
	for _, x := range wishes {
		x.check(t, w)
	}
	time.Sleep(10 * time.Minute) // nothing happens any more
	for _, x := range wishes {
		if r := w.job(x.name); r.Status != x.finally.Status || !r.CompletedAt.Equal(x.finally.CompletedAt.Time) {
			t.Errorf("%s ended twice: %+v, then %+v", x.name, x.finally, r.Job)
		}
	}
}

func randomWish(rng *rand.Rand, name string) *expectation {
	last := []app.Cause{app.CauseDone, app.CauseDone, app.CauseExit, app.CauseMemory, "", app.CauseInterrupted}[rng.IntN(6)]
	lost := []app.Cause{"", app.CauseInterrupted}[rng.IntN(2)]
	ends := []app.Cause{last}
	if last == "" || last == app.CauseInterrupted || rng.IntN(3) == 0 {
		ends = []app.Cause{lost, last}
	}
	x := &expectation{name: name, stop: rng.IntN(6) == 0, final: app.Failed}
	if last == app.CauseDone {
		x.final = app.Completed
	}
	for _, cause := range ends {
		x.scripts = append(x.scripts, script{
			waits:     time.Duration(rng.IntN(3000)) * time.Millisecond,
			runs:      time.Duration(rng.ExpFloat64() * float64(5*time.Second)),
			cause:     cause,
			stopTakes: time.Duration(rng.IntN(9000)) * time.Millisecond,
		})
	}
	return x
}

func stopSome(t *testing.T, w *world, wishes map[string]*expectation) {
	for _, x := range wishes {
		if x.stop {
			_, err := w.Jobs.Cancel(t.Context(), chief, x.name)
			must.OK(t, err)
		}
	}
}

// check waits for the job's end and checks that it is as expected.
func (x *expectation) check(t *testing.T, w *world) {
	t.Helper()
	r := w.finished(x.name)
	x.finally = r.Job
	tasks := w.executor.started(r.ID)
	if tasks > r.Attempts || r.Attempts > len(x.scripts) {
		t.Errorf("%s: %d tasks, %d attempts, want at most %d", x.name, tasks, r.Attempts, len(x.scripts))
	}
	if x.stop && r.Status == app.Failed {
		return
	}
	if r.Status != x.final || tasks != len(x.scripts) && !x.stop {
		t.Errorf("%s: %s after %d tasks, want %s after %d; failure %+v", x.name, r.Status, tasks, x.final, len(x.scripts), r.Failure)
	}
	if r.Status == app.Completed {
		w.checkResult(r.ID)
	}
}
