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
	// askEvery is the interval of querying estimates for jobs that have none yet.
	askEvery = time.Second / 2
	// askFor limits how long a job's estimate is queried.
	askFor = time.Minute
	// maxFollowed limits the number of jobs followed at once. Further ones are ignored.
	maxFollowed = 1000
)

// Kinds of estimates, as a label.
const (
	ofRun   = "run"
	ofQueue = "queue"
)

// Forecasts provides the service's estimates for jobs. *app.Runs implements it.
type Forecasts interface {
	RemainingTime(id app.JobID) (seconds float64, basis string, runs bool)
	QueueForecast(executor string) app.QueueForecast
}

// estimates stores estimates for jobs until their outcomes are known. It follows jobs of
// batches only while they run.
type estimates struct {
	mu sync.Mutex
	of map[app.JobID]*expected
}

// expected is the first estimate of a wait or a run.
type expected struct {
	executor string
	runs     bool
	began    time.Time // start of the run or, for a wait, the time when following began
	from, to time.Time // time of the estimate, and estimated end; zero if none yet
}

// follow records a change of a job. It yields the ratio of actual to estimated time of a
// wait or run that ends with the change.
func (e *estimates) follow(was, now *app.Job) iter.Seq2[float64, string] {
	return func(yield func(float64, string) bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		x := e.of[now.ID]
		switch now.Status {
		case app.Queued:
			if was.Status != app.Queued {
				e.addExpected(now.ID, &expected{executor: now.Executor, began: time.Now()})
			}
			return
		case app.Running:
			if x != nil && !x.runs {
				x.yieldErrors(now.StartedAt.Time, ofQueue, yield)
			}
			if x == nil || !x.runs {
				delete(e.of, now.ID)
				e.addExpected(now.ID, &expected{executor: now.Executor, runs: true, began: now.StartedAt.Time})
			}
			return
		case app.Completed:
			if x != nil && x.runs {
				x.yieldErrors(now.CompletedAt.Time, ofRun, yield)
			}
		}
		delete(e.of, now.ID)
	}
}

// yieldErrors yields the ratio of actual to estimated time.
func (x *expected) yieldErrors(ended time.Time, of string, yield func(float64, string) bool) {
	begin := x.from
	if x.runs {
		begin = x.began
	}
	if estimated := x.to.Sub(begin); !x.to.IsZero() && estimated > 0 {
		yield(max(0, ended.Sub(begin).Seconds())/estimated.Seconds(), of)
	}
}

func (e *estimates) addExpected(id app.JobID, x *expected) {
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

// unknown returns the jobs without an estimate.
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

// fillMissing requests the missing estimates.
func (e *estimates) fillMissing(of Forecasts) {
	now := time.Now()
	for id, x := range e.unknown(now) {
		left := 0.0
		if x.runs {
			seconds, basis, _ := of.RemainingTime(id)
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
	if x := e.of[id]; x != nil && x.runs == runs { // the job might have started since
		x.from, x.to = now, end
	}
}

// Estimate compares estimates with actual times until ctx is done.
func (m *Metrics) Estimate(ctx context.Context, of Forecasts) {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			m.estimates.fillMissing(of)
		case <-ctx.Done():
			return
		}
	}
}
