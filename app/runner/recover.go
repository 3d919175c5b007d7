package runner

import (
	"context"
	"slices"

	"molrun/app"
	"molrun/app/runner/schedule"
	"molrun/app/task"
)

// reconcile propagates job statuses, compares the claimed jobs with the active ones, and
// reports whether it could read them. It adopts claimed jobs that are not active: all of
// them after a restart, later those whose claim was recorded although the call failed. It
// stops jobs that were canceled or are no longer ours.
//
// It runs whenever the runner wakes up, so it does not read the records of active jobs.
func (r *Runner) reconcile(ctx context.Context) bool {
	if err := r.jobs.Propagate(ctx); err != nil {
		if ctx.Err() == nil {
			r.options.Log.Warn().Err(err).Msg("could not update dependent jobs; retrying")
		}
		return false
	}
	claims, err := r.jobs.Claims(ctx)
	current, unknown := make(map[app.JobID]int, len(claims)), false
	for _, c := range claims {
		current[c.Job] = c.Attempt
		switch a := r.active[c.Job]; {
		case a == nil:
			unknown = unknown || !r.orphaned[c.Job] || c.Stop
		case c.Stop:
			a.askStop()
		}
	}
	if err == nil && unknown {
		err = r.adoptAll(ctx)
	}
	if err != nil {
		if ctx.Err() == nil {
			r.options.Log.Warn().Err(err).Msg("could not read the claimed jobs; retrying")
		}
		return false
	}
	for id, a := range r.active {
		if attempt, ok := current[id]; a.claimed && (!ok || attempt != a.number) {
			a.askStop()
		}
	}
	return true
}

// adoptAll resumes the claimed jobs that are not active. Their tasks might not exist.
func (r *Runner) adoptAll(ctx context.Context) error {
	jobs, err := r.jobs.Active(ctx)
	if err != nil {
		return err
	}
	found := map[string]*worker{}
	for _, j := range jobs {
		if r.active[j.ID] != nil {
			continue
		}
		i := slices.IndexFunc(r.executors, func(e *executor) bool { return e.Name() == j.Executor })
		if i < 0 {
			r.orphan(ctx, j)
			continue
		}
		e := r.executors[i]
		lease := schedule.Lease{User: schedule.User{Organization: j.Organization, Email: j.Email}, Needs: j.Private.Needs, Devices: j.Private.Devices, Work: j.Work()}
		id := j.Private.Worker
		if id == "" || !r.canWorker(e) {
			e.share.CountRunning(lease)
			r.startJob(ctx, e, j.ID, lease, j)
			continue
		}
		if found[id] == nil {
			if r.workerCounts.Has(id) {
				continue // the job is just joining one of our workers
			}
			found[id] = r.adopt(e, j, lease)
		}
		r.adoptJob(ctx, e, j, found[id])
	}
	for _, p := range found {
		r.attempts.Go(func() { p.run(ctx) })
	}
	return nil
}

// adopt resumes a worker of an earlier runner. The worker gets no more jobs, because it is
// unknown which ones it has. Jobs that it does not have wait until it has exited.
func (r *Runner) adopt(e *executor, j *app.Job, l schedule.Lease) *worker {
	p := r.newWorker(e, j, l, j.Private.Worker)
	p.alive, p.exhausted, p.hasSlot = true, true, true
	if e.remote != nil {
		p.launch = p.lastLaunch()
	}
	p.order = task.WorkerTasks(p.dir())
	r.workerCounts.Add(p.id, e.kind(l))
	e.workers[p] = true
	p.noteGPUFault()
	e.share.CountRunning(l)
	e.running++
	task.CloseWorker(p.dir()) // on failure, the worker exits after receiving no jobs for a while
	return p
}

// orphan handles a job whose executor is no longer configured. Its task might still run
// there, so the job can neither be finished nor run elsewhere, unless a user cancels it.
func (r *Runner) orphan(ctx context.Context, j *app.Job) {
	log := r.options.Log.With().Str("job", string(j.ID)).Str("executor", j.Executor).Logger()
	if !r.orphaned[j.ID] {
		r.orphaned[j.ID] = true
		log.Error().Msg("job belongs to an executor that is no longer configured; configure it again or cancel the job")
	}
	if !j.Private.Stop {
		return
	}
	err := r.jobs.Finish(ctx, j.ID, j.Attempts, app.Ending{Lost: "its executor is no longer configured"})
	if err != nil && ctx.Err() == nil {
		log.Warn().Err(err).Msg("could not record the end of a cancelled job; retrying")
	}
}
