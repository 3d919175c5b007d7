package runner

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/placement"
	"molrun/app/task"
)

const (
	// recordPatience bounds one try to change a job's record.
	recordPatience = time.Minute
	// stopEvery is how often an executor is asked again to stop a task.
	stopEvery = 5 * time.Second
)

// attempt is one try at a job, from its claim to its end.
type attempt struct {
	r     *Runner
	place *place
	id    app.JobID
	user  user
	needs placement.Resources
	gpus  []string

	// Of the loop.
	holds, preparing, unknown, claimed bool
	reason                             string

	stop     chan struct{} // closed when its end is asked for
	stopOnce sync.Once

	// Of the attempt's goroutine; set by own.
	job     *app.Job
	where   placement.Placement // as far as located
	number  int                 // the loop may read it once claimed is set
	home    string              // its directory, in the data directory
	dir     string              // where it lies while the task lives: home, but on other machines
	log     zerolog.Logger
	started bool // the record says RUNNING
	begin   time.Time
}

func (r *Runner) newAttempt(p *place, id app.JobID, u user, needs placement.Resources, gpus []string) *attempt {
	return &attempt{r: r, place: p, id: id, user: u, needs: needs, gpus: gpus, stop: make(chan struct{})}
}

// own sets what the job's record tells.
func (a *attempt) own(j *app.Job) {
	a.job, a.number = j, j.Attempts
	a.home = attemptDir(a.r.dirs, j.ID, j.Attempts)
	a.dir = a.place.attemptDir(a.home, j)
	a.started = j.Status == app.Running
	a.begin = time.Now()
	a.log = a.r.options.Log.With().Str("job", string(j.ID)).Str("organization", j.Organization).
		Int("attempt", j.Attempts).Str("executor", a.place.name).Logger()
}

// tell lets the loop know.
func (a *attempt) tell(ctx context.Context, e event) {
	e.attempt = a
	select {
	case a.r.events <- e:
	case <-ctx.Done():
	}
}

// askStop asks for the attempt's end; to repeat it is harmless.
func (a *attempt) askStop() { a.stopOnce.Do(func() { close(a.stop) }) }

func (a *attempt) stopAsked() bool {
	select {
	case <-a.stop:
		return true
	default:
		return false
	}
}

// fresh claims a job and runs it.
func (a *attempt) fresh(ctx context.Context) {
	j := a.claim(ctx)
	if j == nil {
		return
	}
	a.own(j)
	a.tell(ctx, event{kind: evClaimed})
	a.live(ctx, situation{})
}

// found goes on with a job that was claimed by an earlier runner: first of all
// its executor has to tell how its task stands.
func (a *attempt) found(ctx context.Context) {
	for b := recordBackoff(); passing(a.locate(ctx)) && ctx.Err() == nil; b.wait(ctx) {
		a.log.Warn().Msg("where the job goes can't be found out; will try again")
	}
	news := a.place.watcher.add(a.task())
	select {
	case status := <-news:
		a.place.watcher.remove(a.id)
		a.tell(ctx, event{kind: evSeen})
		a.live(ctx, situation{begun: a.begun(), seen: true, status: status})
	case <-ctx.Done():
	}
}

// locate finds out where on its executor the task goes.
func (a *attempt) locate(ctx context.Context) error {
	return bounded(ctx, func(ctx context.Context) (err error) {
		a.where, err = a.r.jobs.PlacementOf(ctx, a.job)
		return err
	})
}

// begun reports whether the attempt's task may have come to life. Doubt counts
// as yes.
func (a *attempt) begun() bool {
	return a.job.Private.Handle != "" || task.Exists(a.dir, task.RunFile) || task.Exists(a.dir, task.ClaimDir)
}

// live takes the job from where it stands to its end, or until ctx ends.
func (a *attempt) live(ctx context.Context, s situation) {
	for ctx.Err() == nil {
		s.stop = a.stopAsked()
		switch decide(s) {
		case stepPrepare:
			failed, err := a.prepare(ctx)
			if err != nil {
				return
			}
			if failed != nil {
				a.settle(ctx, *failed)
				return
			}
			s = situation{begun: true}
		case stepWatch, stepStop:
			s.status, s.seen = a.watch(ctx), true
		case stepCollect:
			a.collected(ctx, s.status.Outcome)
			return
		case stepFail:
			a.failed(ctx, s.status.Outcome)
			return
		case stepLose:
			a.fetch(ctx)
			a.settle(ctx, app.Ending{Outcome: s.status.Outcome, Lost: s.status.Reason})
			return
		}
	}
}

// task is the attempt as executors see it.
func (a *attempt) task() app.Task {
	return app.Task{
		Job:     a.id,
		Attempt: a.number,
		Token:   a.job.Private.Token,
		Dir:     a.dir,
		Needs:   a.needs,
		GPUs:    a.gpus,
		Limit:   time.Duration(a.job.MaxRuntime) * time.Second,
		Handle:  a.job.Private.Handle,

		Placement: a.where,
	}
}

// watch follows the task until it is gone.
func (a *attempt) watch(ctx context.Context) app.TaskStatus {
	news := a.place.watcher.add(a.task())
	defer a.place.watcher.remove(a.id)
	stop := a.stop
	var again <-chan time.Time
	for {
		select {
		case s := <-news:
			if s.State == app.TaskEnded || s.State == app.TaskLost {
				return s
			}
			a.notice(ctx, s)
		case <-stop:
			stop = nil
			again = a.stopTask(ctx)
		case <-again:
			again = a.stopTask(ctx)
		case <-ctx.Done():
			return app.TaskStatus{}
		}
	}
}

// stopTask asks the executor for the task's end and gives the time to ask
// again.
func (a *attempt) stopTask(ctx context.Context) <-chan time.Time {
	callCtx, cancel := context.WithTimeout(ctx, a.place.patience)
	defer cancel()
	if err := a.place.executor.Stop(callCtx, a.task()); err != nil && ctx.Err() == nil {
		a.log.Warn().Err(err).Msg("the executor can't stop the task; will ask again")
	}
	a.place.watcher.expect(a.id)
	return time.After(stopEvery)
}

// notice passes on how a living task stands.
func (a *attempt) notice(ctx context.Context, s app.TaskStatus) {
	if s.State == app.TaskStarting {
		if a.started {
			a.log.Warn().Str("reason", s.Reason).Msg("the executor no longer sees the task run; will go on asking")
			return
		}
		a.tell(ctx, event{kind: evWaiting, reason: s.Reason})
		return
	}
	if !a.started {
		err := a.record(ctx, "start", func(ctx context.Context) error {
			return a.r.jobs.Started(ctx, a.id, a.number, s.StartedAt)
		})
		if err != nil {
			return // ctx ended
		}
		a.started = true
		a.tell(ctx, event{kind: evWaiting})
		a.log.Info().Dur("took", time.Since(a.begin)).Msg("job started")
	}
	if s.Progress != nil {
		a.r.jobs.SetProgress(a.id, s.Progress)
	}
}
