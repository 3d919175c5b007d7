package runner

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/job/eta"
	"molrun/app/runner/schedule"
)

// mostListed is how many waiting jobs of an executor a forecast lists one by one; it
// counts the others. It bounds the time that a forecast takes.
const mostListed = 50_000

// forecaster makes the queue forecast of an executor, apart from the loop.
type forecaster struct {
	executor string
	jobs     Jobs
	states   chan schedule.QueueState // the latest, if it is new
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

// unchanged is how long a forecast is kept for each job that it lists: among thousands, a
// position in the queue means less, and each forecast becomes garbage with the next.
const unchanged = 100 * time.Microsecond

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
		queue, err := f.jobs.Lines(ctx, f.executor, mostListed)
		if err == nil {
			o := schedule.NewQueueForecast(s, queue, past{ctx, f.jobs})
			f.jobs.SetQueueForecast(f.executor, o)
			lasts = time.Duration(o.Listed()) * unchanged
		} else if ctx.Err() == nil {
			log.Warn().Err(err).Str("executor", f.executor).Msg("could not read the queue for the forecast; retrying")
		}
		sleep(ctx, max(20*time.Since(begin), lasts))
	}
}

// past is what the service knows of how long jobs run.
type past struct {
	ctx context.Context
	Jobs
}

// History returns nothing if it can't be read: then there is no estimate.
func (p past) History(class string) *eta.History {
	h, err := p.Jobs.History(p.ctx, class)
	if err != nil {
		return nil
	}
	return h
}

// state returns how an executor stands, for its forecaster.
func (r *Runner) state(e *executor, why eta.Reason) schedule.QueueState {
	s := schedule.QueueState{Turns: e.share.Clone(), At: time.Now(), Claimed: map[app.JobID]bool{}, Running: map[app.JobID]schedule.Lease{}, Rest: why, Blocked: true}
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
	for p := range e.pilots {
		s.Running[p.front()] = p.lease
	}
	return s
}
