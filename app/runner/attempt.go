package runner

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/fault"
	"molrun/app/placement"
	"molrun/app/runner/turns"
	"molrun/app/task"
)

// attempt is one try at a job, from its claim to its end.
type attempt struct {
	*core
	executor *executor
	id       app.JobID
	lease    turns.Lease

	// Of the loop.
	hasSlot, preparing, unseen, claimed bool
	reason                              string // why the task does not run yet

	stop     chan struct{} // closed when the attempt shall end
	stopOnce sync.Once

	// Of the attempt's goroutine, from setJob on.
	job       *app.Job
	number    int    // the loop may read it once claimed is set
	home      string // its place in the job's directory
	dir       string // where its task runs: home, or a directory shared with a cluster
	placement placement.Placement
	started   bool // the record says RUNNING
	begin     time.Time
	log       zerolog.Logger
}

func newAttempt(c *core, e *executor, id app.JobID, l turns.Lease) *attempt {
	return &attempt{core: c, executor: e, id: id, lease: l, stop: make(chan struct{})}
}

// runNew claims a job of the queue and runs it.
func (a *attempt) runNew(ctx context.Context) {
	j := a.claim(ctx)
	if j == nil {
		return
	}
	a.setJob(j)
	a.tell(ctx, event{kind: evClaimed})
	a.run(ctx, situation{})
}

// claim takes the job from the queue. It returns nil if the job no longer
// waits, or ctx ends.
func (a *attempt) claim(ctx context.Context) (j *app.Job) {
	doubt := false // an earlier claim may have been recorded without an answer
	for b := serviceBackoff(); ; b.wait(ctx) {
		err := withTimeout(ctx, func(ctx context.Context) (err error) {
			j, err = a.jobs.Claim(ctx, a.id, a.lease.GPUs)
			if doubt && errors.Is(err, fault.NotFound) {
				j, err = a.findClaim(ctx)
			}
			return err
		})
		switch {
		case err == nil:
			return j
		case errors.Is(err, fault.NotFound) || ctx.Err() != nil:
			return nil
		}
		doubt = true
		a.options.Log.Warn().Err(err).Str("job", string(a.id)).Msg("the job can't be claimed; will try again")
	}
}

// findClaim looks for the job among the claimed ones. Nobody else claims jobs,
// so the claim is this attempt's.
func (a *attempt) findClaim(ctx context.Context) (*app.Job, error) {
	jobs, err := a.jobs.Active(ctx)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		if j.ID == a.id {
			return j, nil
		}
	}
	return nil, fault.NotFound
}

// setJob sets what follows from the job's record.
func (a *attempt) setJob(j *app.Job) {
	a.job, a.number = j, j.Attempts
	a.home = attemptDir(a.dirs, j.ID, j.Attempts)
	a.dir = a.home
	if remote := a.executor.remote; remote != nil {
		a.dir = filepath.Join(remote.AttemptsDir(), string(j.ID), strconv.Itoa(j.Attempts))
	}
	a.started = j.Status == app.Running
	a.begin = time.Now()
	a.log = a.options.Log.With().Str("job", string(j.ID)).Str("organization", j.Organization).
		Int("attempt", j.Attempts).Str("executor", a.executor.Name()).Logger()
}

// runFound continues a job that an earlier runner claimed, once the executor
// has told how its task stands.
func (a *attempt) runFound(ctx context.Context) {
	for b := serviceBackoff(); temporary(a.locate(ctx)) && ctx.Err() == nil; b.wait(ctx) {
		a.log.Warn().Msg("the job's placement can't be determined; will try again")
	}
	news := a.executor.watcher.add(a.task())
	select {
	case status := <-news:
		a.executor.watcher.remove(a.id)
		a.tell(ctx, event{kind: evSeen})
		// In doubt the task has begun.
		begun := a.job.Private.Handle != "" || task.Exists(a.dir, task.RunFile) || task.Exists(a.dir, task.ClaimDir)
		a.run(ctx, situation{begun: begun, seen: true, status: status})
	case <-ctx.Done():
	}
}

// run takes the job from its situation to its end, or until ctx ends.
func (a *attempt) run(ctx context.Context, s situation) {
	for ctx.Err() == nil {
		s.stop = a.stopAsked()
		switch s.next() {
		case stepPrepare:
			failed, err := a.prepare(ctx)
			if err != nil {
				return
			}
			if failed != nil {
				a.finish(ctx, *failed)
				return
			}
			s = situation{begun: true}
		case stepWatch, stepStop:
			s.status, s.seen = a.watch(ctx), true
		case stepCollect:
			a.collect(ctx, s.status.Outcome)
			return
		case stepFail:
			a.fail(ctx, s.status.Outcome)
			return
		case stepLose:
			a.fetch(ctx)
			a.finish(ctx, app.Ending{Outcome: s.status.Outcome, Lost: s.status.Reason})
			return
		}
	}
}

// locate asks where on its executor the task goes.
func (a *attempt) locate(ctx context.Context) error {
	return withTimeout(ctx, func(ctx context.Context) (err error) {
		a.placement, err = a.jobs.PlacementOf(ctx, a.job)
		return err
	})
}

// task returns the attempt as executors see it.
func (a *attempt) task() app.Task {
	return app.Task{
		Job:       a.id,
		Attempt:   a.number,
		Token:     a.job.Private.Token,
		Dir:       a.dir,
		Needs:     a.lease.Needs,
		GPUs:      a.lease.GPUs,
		Limit:     time.Duration(a.job.MaxRuntime) * time.Second,
		Handle:    a.job.Private.Handle,
		Placement: a.placement,
	}
}

// record changes the job's record. It tries until that is done, because what
// happened to a task must not be forgotten while the disk is full. An error
// says that ctx has ended.
func (a *attempt) record(ctx context.Context, what string, change func(context.Context) error) error {
	for b := serviceBackoff(); ; b.wait(ctx) {
		err := withTimeout(ctx, change)
		switch {
		case err == nil || errors.Is(err, fault.NotFound): // the job was deleted
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		a.log.Warn().Err(err).Str("change", what).Msg("the job's record can't be changed; will try again")
	}
}

// tell sends an event to the loop.
func (a *attempt) tell(ctx context.Context, e event) {
	e.attempt = a
	select {
	case a.events <- e:
	case <-ctx.Done():
	}
}

// askStop asks for the attempt's end. It may be called again.
func (a *attempt) askStop() { a.stopOnce.Do(func() { close(a.stop) }) }

func (a *attempt) stopAsked() bool {
	select {
	case <-a.stop:
		return true
	default:
		return false
	}
}
