package runner

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/job/eta"
	"molrun/app/runner/schedule"
)

// maxListed is how many waiting jobs of an executor a forecast lists individually; the
// rest are only counted. It bounds the time that a forecast takes.
const maxListed = 50_000

// forecaster computes the queue forecast of an executor outside the loop.
type forecaster struct {
	executor string
	jobs     Jobs
	states   chan schedule.QueueState // holds the latest state until it is received
}

func newForecaster(executor string, jobs Jobs) *forecaster {
	return &forecaster{executor: executor, jobs: jobs, states: make(chan schedule.QueueState, 1)}
}

// offer replaces the pending state. Only the loop calls it.
func (f *forecaster) offer(s schedule.QueueState) {
	select {
	case <-f.states:
	default:
	}
	f.states <- s
}

// forecastTTL is how long a forecast is kept, for each job that it lists. With thousands
// of jobs an exact position matters less, and every new forecast turns the previous one
// into garbage.
const forecastTTL = 100 * time.Microsecond

// publish publishes forecasts until ctx ends. It is busy for at most a twentieth of the
// time.
func (f *forecaster) publish(ctx context.Context, log zerolog.Logger) {
	for {
		var s schedule.QueueState
		select {
		case s = <-f.states:
		case <-ctx.Done():
			return
		}
		begin, lasts := time.Now(), time.Duration(0)
		queue, err := f.jobs.Lines(ctx, f.executor, maxListed)
		if err == nil {
			o := schedule.NewQueueForecast(s, queue, runHistory{ctx, f.jobs})
			f.jobs.SetQueueForecast(f.executor, o)
			lasts = time.Duration(o.Listed()) * forecastTTL
		} else if ctx.Err() == nil {
			log.Warn().Err(err).Str("executor", f.executor).Msg("could not read the queue for the forecast; retrying")
		}
		sleep(ctx, max(20*time.Since(begin), lasts))
	}
}

// runHistory provides the run times of earlier jobs.
type runHistory struct {
	ctx context.Context
	Jobs
}

// History returns nil if the history can't be read: then there is no estimate.
func (p runHistory) History(class string) *eta.History {
	h, err := p.Jobs.History(p.ctx, class)
	if err != nil {
		return nil
	}
	return h
}

// state returns the queue state of an executor for its forecaster.
func (r *Runner) state(e *executor, why eta.Reason) schedule.QueueState {
	s := schedule.QueueState{Share: e.share.Clone(), At: time.Now(), Claimed: map[app.JobID]bool{}, Running: map[app.JobID]schedule.Lease{}, Rest: why, Blocked: true}
	if why == (eta.Reason{}) {
		s.Rest, s.Blocked = eta.NotTurnYet(true), false
	}
	for id, a := range r.active {
		if a.executor != e {
			continue
		}
		s.Claimed[id] = true
		if a.hasSlot {
			s.Running[id] = a.lease
		}
	}
	for p := range e.workers {
		s.Running[p.front()] = p.lease
	}
	return s
}
