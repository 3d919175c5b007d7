package runner

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/eta"
	"molrun/app/runner/schedule"
)

// rounds runs one scheduling round for every executor.
func (r *Runner) rounds(ctx context.Context) {
	scanned := false
	for _, e := range r.executors {
		before := e.scanned
		e.failed = false
		r.holdGPUs(e)
		if err := r.round(ctx, e); err != nil && ctx.Err() == nil {
			e.failed = true
			r.options.Log.Warn().Err(err).Str("executor", e.Name()).Msg("could not read the queue; retrying")
		}
		r.holdGPUs(e)
		scanned = scanned || e.scanned != before
	}
	if scanned {
		r.publishReasons()
	}
}

// round starts the jobs of one executor that can start now.
func (r *Runner) round(ctx context.Context, e *executor) error {
	e.busy = false
	limit := e.maxStarts()
	deep := time.Since(e.scanned) >= scanEvery
	scan := e.share.Scan(time.Now(), limit, deep, func(id app.JobID) bool { return r.active[id] != nil })
	if !scan.Deep && scan.NothingFree() {
		e.stale = true
		return nil
	}
	if err := r.jobs.Queue(ctx, e.Name(), scan.Visit); err != nil {
		return err
	}
	held := r.leaveToWorkers(e, scan)
	blocked := cmp.Or(r.blocked(e, scan.Waiting), e.whyUnseen())
	if blocked != (eta.Reason{}) {
		limit = 0
	}
	decision := e.share.Next(time.Now(), e.Name(), scan, limit)
	for _, s := range decision.Start {
		r.startJob(ctx, e, s.ID, s.Lease, nil)
	}
	for _, refusal := range decision.Impossible {
		r.reject(ctx, e, refusal)
	}
	for _, w := range held {
		decision.Reasons[w.ID] = e.waiting(heldText)
	}
	reason := cmp.Or(blocked, e.whyFull())
	if reason != (eta.Reason{}) {
		for id := range decision.Reasons {
			decision.Reasons[id] = reason
		}
	}
	known := scan.Deep || blocked != (eta.Reason{}) // a reason that blocks all jobs is shown at once
	e.busy = len(decision.Impossible) > 0           // more such jobs may follow in the queue
	e.stale = !known || reason != (eta.Reason{})
	if known {
		e.scanned, e.reasons = time.Now(), decision.Reasons
		e.noteWaiting(scan.Waiting, decision)
		e.forecaster.offer(r.state(e, reason))
	}
	return nil
}

// heldText is the wait reason of jobs that leaveToWorkers took out of a scan.
const heldText = "waiting in the queue: workers already waiting for the cluster will run it with similar jobs"

// leaveToWorkers removes from a scan the jobs that are better left to workers already
// waiting for a cluster, and returns them.
func (r *Runner) leaveToWorkers(e *executor, scan *schedule.Scan) (held []app.Waiting) {
	if e.remote == nil {
		return nil
	}
	left := map[workerKind]int{}
	scan.Waiting = slices.DeleteFunc(scan.Waiting, func(w app.Waiting) bool {
		k := workerKind{Executor: e.Name(), User: schedule.User{Organization: w.Organization, Email: w.Email}, Class: w.Work.Class}
		n, counted := left[k]
		if !counted {
			var any bool
			if n, any = r.workerCounts.Capacity(k); !any {
				n = math.MaxInt
			}
		}
		left[k] = n - 1
		if n > 0 {
			return false
		}
		held = append(held, w)
		return true
	})
	return held
}

// startJob creates an attempt, with a goroutine, for a job that has a slot. found is the
// job if an earlier runner claimed it, nil if it has yet to be claimed.
func (r *Runner) startJob(ctx context.Context, e *executor, id app.JobID, l schedule.Lease, found *app.Job) {
	a := &attempt{core: &r.core, executor: e, id: id, lease: l, hasSlot: true, stop: make(chan struct{}), gpuLost: make(chan struct{})}
	e.running++
	if e.remote != nil && e.running >= e.remote.MaxTasks() {
		e.filled = time.Now()
	}
	if found != nil {
		a.setJob(found)
		r.resumeAttempt(ctx, a)
		return
	}
	a.preparing = true
	e.preparing++
	if e.remote != nil {
		a.reason = e.waiting("it is being submitted to the cluster")
	}
	r.startAttempt(ctx, a, a.runNew)
}

// adoptJob is like startJob, for a job that an earlier runner claimed for a worker, which
// holds the slot.
func (r *Runner) adoptJob(ctx context.Context, e *executor, found *app.Job, p *worker) {
	a := &attempt{core: &r.core, executor: e, id: found.ID, lease: p.lease, stop: make(chan struct{}), gpuLost: make(chan struct{})}
	a.setJob(found)
	p.join(a)
	r.resumeAttempt(ctx, a)
}

// resumeAttempt starts an attempt for a job that an earlier runner claimed.
func (r *Runner) resumeAttempt(ctx context.Context, a *attempt) {
	a.unseen, a.claimed = true, true
	a.executor.unseen++
	a.reason = a.executor.whyUnseen()
	if a.job.Private.Stop {
		a.askStop()
	}
	r.startAttempt(ctx, a, a.runFound)
}

// startAttempt starts the attempt's goroutine.
func (r *Runner) startAttempt(ctx context.Context, a *attempt, run func(context.Context)) {
	r.active[a.id] = a
	a.noteGPUFault()
	r.attempts.Go(func() {
		run(ctx)
		a.sendEvent(ctx, event{kind: evDone})
	})
}

// blocked returns why none of the waiting jobs can start, or no reason if they can.
func (r *Runner) blocked(e *executor, waiting []app.Waiting) eta.Reason {
	if len(waiting) == 0 {
		return eta.Reason{}
	}
	why := r.options.Blocked()
	if why != e.blocked {
		e.blocked = why
		if why == (eta.Reason{}) {
			r.options.Log.Info().Str("executor", e.Name()).Msg("starting jobs again")
		} else {
			r.options.Log.Warn().Str("executor", e.Name()).Str("reason", why.Text).Msg("no longer starting jobs")
		}
	}
	return why
}

// reject fails a job that can never start.
func (r *Runner) reject(ctx context.Context, e *executor, refusal schedule.Rejection) {
	log := r.options.Log.With().Str("job", string(refusal.ID)).Str("executor", e.Name()).Logger()
	switch err := r.jobs.Reject(ctx, refusal.ID, refusal.Message); {
	case err == nil:
		log.Info().Str("reason", refusal.Message).Msg("job can never start")
	case !errors.Is(err, fault.NotFound) && ctx.Err() == nil:
		log.Warn().Err(err).Msg("could not fail a job that can never start; retrying")
		e.failed = true
	}
}

// publishReasons publishes why jobs wait: those in the queue and those that executors
// hold.
func (r *Runner) publishReasons() {
	reasons := map[app.JobID]eta.Reason{}
	for _, e := range r.executors {
		maps.Copy(reasons, e.reasons)
	}
	for id, a := range r.active {
		delete(reasons, id)
		if a.reason != (eta.Reason{}) {
			reasons[id] = a.reason
		}
	}
	r.jobs.SetWaitReasons(reasons)
}
