package runner

import (
	"cmp"
	"context"
	"errors"
	"time"

	"molrun/app"
	"molrun/app/fault"
)

// rounds looks once at the queue of every executor.
func (r *Runner) rounds(ctx context.Context) {
	looked := false
	for _, p := range r.places {
		before := p.looked
		p.failed = false
		if err := r.round(ctx, p); err != nil && ctx.Err() == nil {
			p.failed = true
			r.options.Log.Warn().Err(err).Str("executor", p.name).Msg("the queue can't be read; will try again")
		}
		looked = looked || p.looked != before
	}
	if looked {
		r.observe()
	}
}

// round starts what may start now on one executor.
func (r *Runner) round(ctx context.Context, p *place) error {
	p.busy = false
	limit := p.starts()
	thorough := time.Since(p.looked) >= lookEvery
	g := p.turns.gather(time.Now(), limit, thorough, func(id app.JobID) bool { return r.held[id] != nil })
	thorough = g.thorough
	if !thorough && g.all.spent() {
		p.stale = true
		return nil
	}
	if err := r.jobs.Queue(ctx, p.name, g.visit); err != nil {
		return err
	}
	full := cmp.Or(r.full(p, g.waiting), p.unheard())
	if full != "" {
		limit = 0
	}
	decided := p.turns.choose(time.Now(), p.name, g, limit)
	if full != "" {
		thorough = true // so that the reason is seen at once
	}
	for _, l := range decided.Start {
		r.launch(ctx, p, l)
	}
	for _, i := range decided.Impossible {
		r.refuse(ctx, p, i)
	}
	if full = cmp.Or(full, p.atMost()); full != "" {
		for id := range decided.Reasons {
			decided.Reasons[id] = full
		}
	}
	p.busy = len(decided.Impossible) > 0 // there may be more behind them
	p.stale = !thorough || full != ""
	if thorough {
		p.looked, p.reasons = time.Now(), decided.Reasons
	}
	return nil
}

// full tells why none of the waiting jobs may be started, "" where they may:
// what a job writes must not take the room that records need.
func (r *Runner) full(p *place, waiting []app.Waiting) string {
	if len(waiting) == 0 {
		return ""
	}
	why := r.options.Room()
	if why != p.full {
		p.full = why
		if why == "" {
			r.options.Log.Info().Str("executor", p.name).Msg("jobs are started again")
		} else {
			r.options.Log.Warn().Str("executor", p.name).Str("reason", why).Msg("no job is started")
		}
	}
	return why
}

// refuse fails a job that can never start.
func (r *Runner) refuse(ctx context.Context, p *place, i refusal) {
	log := r.options.Log.With().Str("job", string(i.ID)).Str("executor", p.name).Logger()
	switch err := r.jobs.Reject(ctx, i.ID, i.Message); {
	case err == nil:
		log.Info().Str("reason", i.Message).Msg("job can never start")
	case !errors.Is(err, fault.NotFound) && ctx.Err() == nil:
		log.Warn().Err(err).Msg("job can never start, which can't be recorded; will try again")
		p.failed = true
	}
}

// observe tells why jobs wait: those in the queue and those that executors
// hold back.
func (r *Runner) observe() {
	reasons := map[app.JobID]string{}
	for _, p := range r.places {
		for id, reason := range p.reasons {
			reasons[id] = reason
		}
	}
	for id, a := range r.held {
		delete(reasons, id)
		if a.reason != "" {
			reasons[id] = a.reason
		}
	}
	r.jobs.SetWaitReasons(reasons)
}

// launch takes a job in hand; its room is taken already.
func (r *Runner) launch(ctx context.Context, p *place, l lease) {
	a := r.newAttempt(p, l.ID, userOf(l.Waiting), l.Needs, l.GPUs)
	a.holds, a.preparing = true, true
	p.preparing++
	p.take()
	r.attend(ctx, a, a.fresh)
}

// attend gives an attempt its goroutine.
func (r *Runner) attend(ctx context.Context, a *attempt, life func(context.Context)) {
	r.held[a.id] = a
	r.attempts.Go(func() {
		life(ctx)
		a.tell(ctx, event{kind: evDone})
	})
}
