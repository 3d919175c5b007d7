package runner

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/durable"
	"molrun/app/base/fault"
	"molrun/app/job/eta"
	"molrun/app/runner/result"
	"molrun/app/runner/schedule"
	"molrun/app/task"
)

// attempt is one attempt at running a job, from claim to end.
type attempt struct {
	*core
	executor *executor
	id       app.JobID
	lease    schedule.Lease

	// Owned by the loop.
	hasSlot, preparing, unseen, claimed bool
	reason                              eta.Reason // why the task does not run yet

	stop     chan struct{} // closed when the attempt must end
	stopOnce sync.Once

	overtaken atomic.Bool // another attempt's worker has already claimed the job

	gpuFault atomic.Pointer[app.FaultyGPU] // a faulty GPU of its lease; set by the loop
	gpuLost  chan struct{}                 // closed when the task can't continue because its GPU is lost
	lostGPU  *app.FaultyGPU                // set before gpuLost is closed
	lostOnce sync.Once

	// Owned by the attempt's goroutine, from setJob on.
	job       *app.Job
	number    int            // the loop may read it once claimed is set
	home      string         // its directory within the job's directory
	dir       string         // where its task runs; equals home unless the task is remote
	remote    *result.Remote // nil if the task runs on this machine
	worker    *worker        // the worker that runs its task; nil means a process of its own
	returned  atomic.Bool    // the worker will not start the task
	placement placement.Placement
	cluster   app.ClusterJob // the cluster job that runs the task, as last reported
	started   bool           // the record says RUNNING
	begin     time.Time
	log       zerolog.Logger
}

// core holds what all attempts of a runner share.
type core struct {
	jobs         Jobs
	dirs         Dirs
	options      Options
	retained     retained
	slots        chan struct{} // holds a token for each file transfer in progress
	events       chan event
	workerCounts *workerCounts
	disk         *durable.Disk   // the disk of the job directories; nil means files are synced one by one
	boot         string          // boot ID of the machine; "" if unknown
	attempts     *sync.WaitGroup // running attempts and workers
	writers      *writers
}

// event is a message from an attempt to the loop.
type event struct {
	attempt  *attempt
	worker   *worker   // for evWorkerStarted and evWorkerEnded
	executor *executor // for evGPUs
	kind     eventKind
	reason   eta.Reason // for evWaiting
}

type eventKind int

const (
	evClaimed       eventKind = iota // the job's record shows our claim
	evSeen                           // the executor has reported the status of a task found at startup
	evPrepared                       // the task was started
	evWaiting                        // the reason why the task does not run yet has changed
	evFreed                          // the task has exited and its slot is free
	evWorkerStarted                  // the attempt's slot now belongs to the worker
	evJoined                         // the attempt has joined a worker
	evWorkerEnded                    // the worker no longer needs its slot
	evGPUs                           // the executor's GPUs have changed
	evDone                           // the attempt is finished, or its job was never ours
)

// runNew claims a queued job and runs it.
func (a *attempt) runNew(ctx context.Context) {
	limit, ok := a.claimLimit(ctx)
	if !ok {
		return
	}
	j, rows := a.claim(ctx, limit)
	if j == nil {
		a.workerCounts.Remove(limit.Worker)
		return
	}
	a.setJob(j)
	a.sendEvent(ctx, event{kind: evClaimed})
	if p := a.startWorker(limit, rows); p != nil {
		p.join(a)
		a.sendEvent(ctx, event{kind: evWorkerStarted, worker: p})
		p.startAttempts(ctx, rows)
		a.attempts.Go(func() { p.run(ctx) })
		defer p.attemptDone()
		defer a.leave()
	}
	a.runFrom(ctx, situation{})
}

// claim claims the job, and further jobs for its worker. It returns nil if the job is no
// longer queued or ctx ends. An overtaken attempt does not retry, because the loop has
// dropped it: by then the job may be queued again with another attempt.
func (a *attempt) claim(ctx context.Context, p app.ClaimLimit) (*app.Job, []*app.Job) {
	doubt := false // an earlier claim may have been recorded although the call failed
	for b := serviceBackoff(); !a.overtaken.Load(); b.wait(ctx) {
		callCtx, cancel := context.WithTimeout(ctx, serviceTimeout)
		j, rows, err := a.jobs.Claim(callCtx, a.id, a.lease.Devices, p)
		if doubt && errors.Is(err, fault.NotFound) {
			j, err = a.findClaim(callCtx, p.Worker)
		}
		cancel()
		switch {
		case err == nil:
			return j, rows
		case errors.Is(err, fault.NotFound) || ctx.Err() != nil:
			return nil, nil
		}
		doubt = true
		a.options.Log.Warn().Err(err).Str("job", string(a.id)).Msg("could not claim a job; retrying")
	}
	return nil, nil
}

// findClaim looks for the job among the claimed ones. Only workers race for claims, so the
// claim is this attempt's unless it names another worker.
func (a *attempt) findClaim(ctx context.Context, worker string) (*app.Job, error) {
	jobs, err := a.jobs.Active(ctx)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		if j.ID == a.id && (j.Private.Worker == "" || j.Private.Worker == worker) {
			return j, nil
		}
	}
	return nil, fault.NotFound
}

// setJob sets the fields derived from the job's record.
func (a *attempt) setJob(j *app.Job) {
	a.job, a.number = j, j.Attempts
	a.home = filepath.Join(a.dirs.JobDir(j.ID), strconv.Itoa(j.Attempts))
	a.dir = a.home
	a.started = j.Status == app.Running
	a.begin = time.Now()
	a.log = a.options.Log.With().Str("job", string(j.ID)).Str("organization", j.Organization).
		Int("attempt", j.Attempts).Str("executor", a.executor.Name()).Logger()
	if e := a.executor.remote; e != nil {
		a.dir = filepath.Join(e.AttemptsDir(), string(j.ID), strconv.Itoa(j.Attempts))
		a.remote = &result.Remote{Dir: a.dir, Home: a.home, MaxFiles: a.options.MaxFiles, Log: a.log}
	}
}

// runFound resumes a job claimed by an earlier runner, once the executor has reported the
// status of its task.
func (a *attempt) runFound(ctx context.Context) {
	for b := serviceBackoff(); temporary(a.locate(ctx)) && ctx.Err() == nil; b.wait(ctx) {
		a.log.Warn().Msg("could not determine the placement of a job; retrying")
	}
	if a.worker != nil {
		defer a.worker.attemptDone()
		defer a.leave()
	}
	news := a.follow()
	for ctx.Err() == nil {
		select {
		case n := <-news:
			if n.unresponsive {
				continue
			}
			a.unfollow()
			a.sendEvent(ctx, event{kind: evSeen})
			// If in doubt, assume that the task has begun.
			begun := a.job.Private.Handle != "" || task.Exists(a.dir, task.RunFile) || task.Exists(a.dir, task.ClaimDir)
			a.runFrom(ctx, situation{begun: begun, seen: true, status: n.TaskStatus})
			return
		case <-ctx.Done():
		}
	}
}

// runFrom runs the job from situation s to its end, or until ctx ends.
func (a *attempt) runFrom(ctx context.Context, s situation) {
	for ctx.Err() == nil {
		s.stop = a.stopAsked()
		switch s.next() {
		case stepPrepare:
			failed, err := a.prepare(ctx)
			if errors.Is(err, errGPUFault) {
				a.returnToQueue(ctx, "its GPU is faulty")
				return
			}
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
			if a.returned.Load() && s.status.State == app.TaskLost && !a.stopAsked() {
				a.returnToQueue(ctx, s.status.Reason)
				return
			}
			s.begun = s.begun && !a.neverBegan(s.status)
			if s.begun && cancelled(s.status) {
				s.status.State = app.TaskEnded
			}
		case stepCollect:
			a.leave()
			a.collect(ctx, s.status.Outcome)
			return
		case stepFail:
			a.leave()
			if why := a.gpuFailure(ctx, s.status.Outcome); why != "" {
				a.fetchResult(ctx)
				a.finish(ctx, lostWithGPU(s.status.Outcome, why))
				return
			}
			a.fail(ctx, s.status.Outcome)
			return
		case stepLose:
			a.leave()
			a.fetchResult(ctx)
			end := app.Ending{Lost: cmp.Or(a.whyLost(), s.status.Reason)}
			if s.status.State == app.TaskEnded {
				end.Outcome = s.status.Outcome
			}
			a.finish(ctx, end)
			return
		}
	}
}

// returnToQueue puts the job back in the queue.
func (a *attempt) returnToQueue(ctx context.Context, why string) {
	// The next attempt to prepare the directory must create its own lock, not reuse the
	// worker's.
	if err := os.RemoveAll(filepath.Join(a.dir, task.LockFile)); err != nil {
		a.finish(ctx, app.Ending{Lost: "could not clear its directory: " + err.Error()})
		return
	}
	err := a.record(ctx, "return", func(ctx context.Context) error {
		return a.jobs.Return(ctx, a.id, a.number)
	})
	if err == nil {
		a.log.Info().Str("reason", why).Msg("returned a job to the queue")
	}
}

// neverBegan reports whether the attempt's task was lost with its worker before it began.
// The task counts as begun if too many workers in succession were lost before reaching it,
// or if they were canceled by hand more often than its retries allow, and more than once.
func (a *attempt) neverBegan(s app.TaskStatus) bool {
	return a.worker != nil && s.State == app.TaskLost && a.worker.launches.Load() < maxLaunches &&
		!(cancelled(s) && int(a.worker.cancels.Load()) > max(1, a.job.Private.Retries)) &&
		!task.Exists(a.dir, task.RunFile) && !task.Exists(a.dir, task.OutcomeFile)
}

// situation is the known state of a claimed job. It does not depend on whether the runner
// has followed the job from the start or has just found it.
type situation struct {
	begun  bool // its task may have begun: there is a handle or run.json
	stop   bool // the job was canceled
	seen   bool // the executor has reported the status of the task
	status app.TaskStatus
}

// step is the next thing to do for a claimed job.
type step int

const (
	stepPrepare step = iota // prepare its directory from scratch and start its task
	stepWatch               // wait for status updates
	stepStop                // stop its task and wait for status updates
	stepCollect             // store the result
	stepFail                // record why it failed
	stepLose                // record the attempt as lost
)

// next returns the next step. A task is started only if no other task of the job can be
// alive: either none was ever started, or the executor reports that none exists and none
// had begun.
func (s situation) next() step {
	if !s.seen { // just claimed, or just started
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
	switch s.status.State {
	case app.TaskStarting, app.TaskRunning:
		if s.stop {
			return stepStop
		}
		return stepWatch
	case app.TaskEnded:
		// Only the outcome counts: a job that finished before it could be stopped is
		// completed.
		switch o := s.status.Outcome; {
		case o == nil || o.Cause == app.CauseInterrupted:
			return stepLose
		case o.Cause == app.CauseDone:
			return stepCollect
		}
		return stepFail
	}
	if s.begun || s.stop {
		return stepLose
	}
	return stepPrepare
}

func (a *attempt) sendEvent(ctx context.Context, e event) {
	e.attempt = a
	select {
	case a.events <- e:
	case <-ctx.Done():
	}
}

// askStop requests the attempt's end. It is idempotent.
func (a *attempt) askStop() { a.stopOnce.Do(func() { close(a.stop) }) }

func (a *attempt) stopAsked() bool {
	select {
	case <-a.stop:
		return true
	default:
		return false
	}
}
