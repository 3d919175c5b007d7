package metrics

import (
	"context"
	"iter"
	"sync"
	"time"

	"molrun/app"
	"molrun/app/job/eta"
)

const (
	// askEvery is how often jobs are looked at that have no estimate yet.
	askEvery = time.Second / 2
	// askFor is how long that is tried for a job.
	askFor = time.Minute
	// maxFollowed bounds how many jobs are followed at once. Further ones are left out.
	maxFollowed = 1000
)

// What was estimated, as a label.
const (
	ofRun   = "run"
	ofQueue = "queue"
)

// Foresight is what the service expects of jobs. *app.Runs has it.
type Foresight interface {
	Left(id app.JobID) (seconds float64, basis string, runs bool)
	QueueForecast(executor string) app.QueueForecast
}

// estimates remembers what was expected of jobs, until that has come to pass. Of the jobs
// of batches it follows the running ones only.
type estimates struct {
	mu sync.Mutex
	of map[app.JobID]*expected
}

// expected is the first estimate of a wait or a run.
type expected struct {
	executor string
	runs     bool
	began    time.Time // to run, or to be followed
	from, to time.Time // the estimate, and when it was made; zero: there is none yet
}

// follow notes a change of a job. It yields the ratio of what was estimated, if that
// ends with the change.
func (e *estimates) follow(was, now *app.Job) iter.Seq2[float64, string] {
	return func(yield func(float64, string) bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		x := e.of[now.ID]
		switch now.Status {
		case app.Queued:
			if was.Status != app.Queued {
				e.add(now.ID, &expected{executor: now.Executor, began: time.Now()})
			}
			return
		case app.Running:
			if x != nil && !x.runs {
				x.tell(now.StartedAt.Time, ofQueue, yield)
			}
			if x == nil || !x.runs {
				delete(e.of, now.ID)
				e.add(now.ID, &expected{executor: now.Executor, runs: true, began: now.StartedAt.Time})
			}
			return
		case app.Completed:
			if x != nil && x.runs {
				x.tell(now.CompletedAt.Time, ofRun, yield)
			}
		}
		delete(e.of, now.ID)
	}
}

// tell yields how much longer it took than was expected.
func (x *expected) tell(ended time.Time, of string, yield func(float64, string) bool) {
	begin := x.from
	if x.runs {
		begin = x.began
	}
	if estimated := x.to.Sub(begin); !x.to.IsZero() && estimated > 0 {
		yield(max(0, ended.Sub(begin).Seconds())/estimated.Seconds(), of)
	}
}

func (e *estimates) add(id app.JobID, x *expected) {
	if e.of == nil {
		e.of = map[app.JobID]*expected{}
	}
	if len(e.of) < maxFollowed {
		e.of[id] = x
	}
}

func (e *estimates) forget(id app.JobID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.of, id)
}

// unknown returns the jobs that have no estimate yet.
func (e *estimates) unknown(now time.Time) map[app.JobID]expected {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := map[app.JobID]expected{}
	for id, x := range e.of {
		switch {
		case !x.to.IsZero():
		case now.Sub(x.began) > askFor:
			delete(e.of, id)
		default:
			all[id] = *x
		}
	}
	return all
}

// ask asks for the estimates that are lacking.
func (e *estimates) ask(of Foresight) {
	now := time.Now()
	for id, x := range e.unknown(now) {
		left := 0.0
		if x.runs {
			seconds, basis, _ := of.Left(id)
			if basis != "" && basis != eta.ByProgress {
				left = seconds
			}
		} else if o := of.QueueForecast(x.executor); o != nil {
			place, _, _ := o.Queue(id, now)
			left = float64(place.ETASeconds)
		}
		if left > 0 {
			e.expect(id, x.runs, now, now.Add(time.Duration(left*float64(time.Second))))
		}
	}
}

func (e *estimates) expect(id app.JobID, runs bool, now, end time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.of[id]; x != nil && x.runs == runs { // it may have started meanwhile
		x.from, x.to = now, end
	}
}

// Estimate compares estimates with what came of them, until ctx ends.
func (m *Metrics) Estimate(ctx context.Context, of Foresight) {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			m.estimates.ask(of)
		case <-ctx.Done():
			return
		}
	}
}
