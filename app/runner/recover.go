package runner

import (
	"context"

	"molrun/app"
)

// reconcile compares the claimed jobs with those in hand, and reports whether
// it could read them. A claimed job that nobody looks after is taken in hand:
// after a restart all of them, later one whose claim was recorded though its
// answer was lost. A job whose end is asked for is told so, as is one that is
// no longer ours.
//
// It happens at every wake-up, so it reads no job that is in hand.
func (r *Runner) reconcile(ctx context.Context) bool {
	claims, err := r.jobs.Claims(ctx)
	claimed, strange := make(map[app.JobID]int, len(claims)), false
	for _, c := range claims {
		claimed[c.Job] = c.Attempt
		switch a := r.held[c.Job]; {
		case a == nil:
			strange = strange || !r.astray[c.Job] || c.Stop
		case c.Stop:
			a.askStop()
		}
	}
	if err == nil && strange {
		err = r.adoptAll(ctx)
	}
	if err != nil {
		if ctx.Err() == nil {
			r.options.Log.Warn().Err(err).Msg("the claimed jobs can't be read; will try again")
		}
		return false
	}
	for id, a := range r.held {
		if attempt, ok := claimed[id]; a.claimed && (!ok || attempt != a.number) {
			a.askStop()
		}
	}
	return true
}

// adoptAll takes in hand the claimed jobs that nobody looks after.
func (r *Runner) adoptAll(ctx context.Context) error {
	jobs, err := r.jobs.Active(ctx)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if r.held[j.ID] == nil {
			r.adopt(ctx, j)
		}
	}
	return nil
}

// adopt takes a claimed job in hand whose task may or may not exist.
func (r *Runner) adopt(ctx context.Context, j *app.Job) {
	p := r.place(j.Executor)
	if p == nil {
		r.strand(ctx, j)
		return
	}
	a := r.newAttempt(p, j.ID, user{j.Organization, j.Email}, j.Private.Needs, j.Private.GPUs)
	a.own(j)
	a.holds, a.unknown, a.claimed = true, true, true
	p.unknown++
	p.take()
	a.reason = p.unheard()
	p.turns.begin(a.user, a.needs, a.gpus)
	if j.Private.Stop {
		a.askStop()
	}
	r.attend(ctx, a, a.found)
}

// strand leaves a job alone whose executor is no longer configured: its task
// may still run there, so it can neither be settled nor run elsewhere. Only a
// user who asks for its end gives up on it.
func (r *Runner) strand(ctx context.Context, j *app.Job) {
	log := r.options.Log.With().Str("job", string(j.ID)).Str("executor", j.Executor).Logger()
	if !r.astray[j.ID] {
		r.astray[j.ID] = true
		log.Error().Msg("job was claimed for an executor that is not configured; configure it again or cancel the job")
	}
	if !j.Private.Stop {
		return
	}
	err := r.jobs.Finish(ctx, j.ID, j.Attempts, app.Ending{Lost: "its executor is no longer configured"})
	if err != nil && ctx.Err() == nil {
		log.Warn().Err(err).Msg("job can't be settled; will try again")
	}
}

// step is what to do next for a claimed job.
type step int

const (
	stepPrepare step = iota // lay out its directory, from scratch, and start its task
	stepWatch               // wait for news
	stepStop                // have its task ended and wait for news
	stepCollect             // keep the result
	stepFail                // record why it failed
	stepLose                // record that it was lost
)

// situation is what is known of a claimed job. It is the same whether the
// runner has followed the job all along or has just found it.
type situation struct {
	begun  bool // its task may have come to life: a handle or run.json exists
	stop   bool // its end is asked for
	seen   bool // the executor told how the task stands
	status app.TaskStatus
}

// decide gives the next step. A task is started only where no other of the
// job can live: nothing was started ever, or the executor says that nothing
// is left and nothing had begun.
func decide(s situation) step {
	if !s.seen {
		return unseen(s)
	}
	switch s.status.State {
	case app.TaskStarting, app.TaskRunning:
		if s.stop {
			return stepStop
		}
		return stepWatch
	case app.TaskEnded:
		return ended(s.status.Outcome)
	}
	if s.begun || s.stop {
		return stepLose
	}
	return stepPrepare
}

// unseen decides for a job that was claimed a moment ago, or whose task was
// just started.
func unseen(s situation) step {
	switch {
	case s.begun && s.stop:
		return stepStop
	case s.begun:
		return stepWatch
	case s.stop:
		return stepLose
	}
	return stepPrepare
}

// ended decides by the outcome alone: a job that was done before it could be
// stopped is completed.
func ended(o *app.Outcome) step {
	switch {
	case o == nil || o.Cause == app.CauseInterrupted:
		return stepLose
	case o.Cause == app.CauseDone:
		return stepCollect
	}
	return stepFail
}
