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

// attempt is one try at a job, from its claim to its end.
type attempt struct {
	*core
	executor *executor
	id       app.JobID
	lease    schedule.Lease

	// Of the loop.
	hasSlot, preparing, unseen, claimed bool
	reason                              eta.Reason // why the task does not run yet

	stop     chan struct{} // closed when the attempt shall end
	stopOnce sync.Once

	overtaken atomic.Bool // a pilot has claimed the job before

	gpuFault atomic.Pointer[app.FaultyGPU] // of a GPU that it has; set by the loop
	gpuLost  chan struct{}                 // closed when its task can't continue for that
	lostGPU  *app.FaultyGPU                // set before gpuLost is closed
	lostOnce sync.Once

	// Of the attempt's goroutine, from setJob on.
	job       *app.Job
	number    int            // the loop may read it once claimed is set
	home      string         // its place in the job's directory
	dir       string         // where its task runs: home, unless it is remote
	remote    *result.Remote // nil if the task runs on this machine
	pilot     *pilot         // that runs its task; nil: it has a process of its own
	returned  atomic.Bool    // the pilot will not begin it
	placement placement.Placement
	cluster   app.ClusterJob // that runs the task, as last reported
	started   bool           // the record says RUNNING
	begin     time.Time
	log       zerolog.Logger
}

// core is what all attempts of a runner share.
type core struct {
	jobs        Jobs
	dirs        Dirs
	options     Options
	retained    retained
	workers     chan struct{} // holds a token for each worker
	events      chan event
	pilotCounts *pilotCounts
	disk        *durable.Disk   // of jobs' directories; nil: files are synced one by one
	boot        string          // of the machine; "": unknown
	attempts    *sync.WaitGroup // of attempts and pilots
	writers     *writers
}

// event is a message of an attempt to the loop.
type event struct {
	attempt  *attempt
	pilot    *pilot    // of evTookOff and evPilotEnded
	executor *executor // of evGPUs
	kind     eventKind
	reason   eta.Reason // of evWaiting
}

type eventKind int

const (
	evClaimed    eventKind = iota // the job's record says that it is ours
	evSeen                        // the executor has reported the status of a task found at the start
	evPrepared                    // the task was started
	evWaiting                     // the task does not run yet, for a reason
	evFreed                       // the task has exited, its slot is free
	evTookOff                     // the attempt's slot is now the pilot's
	evJoined                      // the attempt is one more in a pilot
	evPilotEnded                  // the pilot needs its slot no more
	evGPUs                        // the executor's GPUs have changed
	evDone                        // the attempt is finished, or was never ours
)

// runNew claims a job of the queue and runs it.
func (a *attempt) runNew(ctx context.Context) {
	limit, ok := a.claimLimit(ctx)
	if !ok {
		return
	}
	j, rows := a.claim(ctx, limit)
	if j == nil {
		a.pilotCounts.Remove(limit.Pilot)
		return
	}
	a.setJob(j)
	a.sendEvent(ctx, event{kind: evClaimed})
	if p := a.startPilot(limit, rows); p != nil {
		p.join(a)
		a.sendEvent(ctx, event{kind: evTookOff, pilot: p})
		p.attend(ctx, rows)
		a.attempts.Go(func() { p.run(ctx) })
		defer p.attemptDone()
		defer a.leave()
	}
	a.runFrom(ctx, situation{})
}

// claim takes the job from the queue, and further rows for its pilot. It returns nil if the
// job no longer waits, or ctx ends. An attempt that was overtaken does not try again, for the
// loop has forgotten it: the job may be back in the queue by then, and have another attempt.
func (a *attempt) claim(ctx context.Context, p app.ClaimLimit) (*app.Job, []*app.Job) {
	doubt := false // an earlier claim may have been recorded without an answer
	for b := serviceBackoff(); !a.overtaken.Load(); b.wait(ctx) {
		callCtx, cancel := context.WithTimeout(ctx, serviceTimeout)
		j, rows, err := a.jobs.Claim(callCtx, a.id, a.lease.Devices, p)
		if doubt && errors.Is(err, fault.NotFound) {
			j, err = a.findClaim(callCtx, p.Pilot)
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

// findClaim looks for the job among the claimed ones. Only pilots race for claims, so the
// claim belongs to this attempt unless it names another attempt's pilot.
func (a *attempt) findClaim(ctx context.Context, pilot string) (*app.Job, error) {
	jobs, err := a.jobs.Active(ctx)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		if j.ID == a.id && (j.Private.Pilot == "" || j.Private.Pilot == pilot) {
			return j, nil
		}
	}
	return nil, fault.NotFound
}

// setJob sets what follows from the job's record.
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

// runFound continues a job that an earlier runner claimed, once the executor
// has reported the status of its task.
func (a *attempt) runFound(ctx context.Context) {
	for b := serviceBackoff(); temporary(a.locate(ctx)) && ctx.Err() == nil; b.wait(ctx) {
		a.log.Warn().Msg("could not determine the placement of a job; retrying")
	}
	if a.pilot != nil {
		defer a.pilot.attemptDone()
		defer a.leave()
	}
	news := a.follow()
	for ctx.Err() == nil {
		select {
		case n := <-news:
			if n.silent {
				continue
			}
			a.unfollow()
			a.sendEvent(ctx, event{kind: evSeen})
			// In doubt the task has begun.
			begun := a.job.Private.Handle != "" || task.Exists(a.dir, task.RunFile) || task.Exists(a.dir, task.ClaimDir)
			a.runFrom(ctx, situation{begun: begun, seen: true, status: n.TaskStatus})
			return
		case <-ctx.Done():
		}
	}
}

// runFrom takes the job from its situation to its end, or until ctx ends.
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
			if why := a.brokenGPU(ctx, s.status.Outcome); why != "" {
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

// returnToQueue puts the job back into the queue.
func (a *attempt) returnToQueue(ctx context.Context, why string) {
	// The next one to prepare the directory takes a lock of its own, and not the pilot's.
	if err := os.RemoveAll(filepath.Join(a.dir, task.LockFile)); err != nil {
		a.finish(ctx, app.Ending{Lost: "its directory can't be cleared: " + err.Error()})
		return
	}
	err := a.record(ctx, "return", func(ctx context.Context) error {
		return a.jobs.Return(ctx, a.id, a.number)
	})
	if err == nil {
		a.log.Info().Str("reason", why).Msg("returned a job to the queue")
	}
}

// neverBegan reports whether the attempt's task is lost with the pilot that was to run it.
// If pilots are lost again and again before they get to it, it counts as begun, as it does
// if they are cancelled by hand more often than its retries allow, and more than once.
func (a *attempt) neverBegan(s app.TaskStatus) bool {
	return a.pilot != nil && s.State == app.TaskLost && a.pilot.launches.Load() < mostLaunches &&
		!(cancelled(s) && int(a.pilot.cancels.Load()) > max(1, a.job.Private.Retries)) &&
		!task.Exists(a.dir, task.RunFile) && !task.Exists(a.dir, task.OutcomeFile)
}

// situation is the known state of a claimed job. It is the same whether the
// runner has followed the job all along or has just found it.
type situation struct {
	begun  bool // its task may have begun: there is a handle or run.json
	stop   bool // it was cancelled
	seen   bool // the executor has reported the status of the task
	status app.TaskStatus
}

// step is what to do next for a claimed job.
type step int

const (
	stepPrepare step = iota // prepare its directory from scratch and start its task
	stepWatch               // wait for news
	stepStop                // stop its task and wait for news
	stepCollect             // keep the result
	stepFail                // record why it failed
	stepLose                // record that it was lost
)

// next returns the next step. A task is started only if no other one of the job
// can be alive: none was ever started, or the executor says that none remains
// and none had begun.
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
		// The outcome alone counts: a job that was done before it could be
		// stopped is completed.
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

// sendEvent sends an event to the loop.
func (a *attempt) sendEvent(ctx context.Context, e event) {
	e.attempt = a
	select {
	case a.events <- e:
	case <-ctx.Done():
	}
}

// askStop requests the attempt's end. It can be called again.
func (a *attempt) askStop() { a.stopOnce.Do(func() { close(a.stop) }) }

func (a *attempt) stopAsked() bool {
	select {
	case <-a.stop:
		return true
	default:
		return false
	}
}
