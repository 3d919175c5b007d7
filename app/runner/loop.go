package runner

import (
	"context"
	"fmt"
	"time"

	"molrun/app"
)

const (
	// lookEvery is how often the queue is looked at in depth while nothing is
	// free; it bounds how old the reasons for waiting are.
	lookEvery = time.Second
	// roundEvery is how often the loop goes round though nothing happened.
	roundEvery = 15 * time.Second
	// maxPreparing bounds the jobs of one executor that are claimed and not
	// started yet. The others stay in the queue, where turns are fair.
	maxPreparing = 64
	// maxRemotePreparing is the same for a cluster. It gathers tasks into
	// arrays, so that as many have to be there at once as an array has, and as
	// many again while that is submitted.
	maxRemotePreparing = 2000
	// topUpEvery is how long a cluster that was full is left alone, unless a
	// tenth of its tasks end before: a few jobs at a time would each be an array
	// of their own.
	topUpEvery = time.Minute
	// longestPause bounds how long the loop rests after much work.
	longestPause = 250 * time.Millisecond
)

// place is an executor as the loop sees it.
type place struct {
	name     string
	executor app.Executor
	remote   app.Remote // nil: its tasks run on this machine
	patience time.Duration
	watcher  *watcher
	turns    *turns

	unknown   int       // jobs found at the start whose task was not seen yet
	preparing int       // jobs claimed and not started yet
	inHand    int       // jobs that hold room
	filled    time.Time // when a cluster last got all the tasks that it may have
	looked    time.Time
	stale     bool // a round since then did not look in depth
	busy      bool // the last round left work to do at once
	failed    bool // the queue could not be read
	reasons   map[app.JobID]string
	full      string // why no job may be started, as was last found
}

func newPlace(e app.Executor, o Options) *place {
	poll := o.Poll
	if _, bounded := e.Capacity(); !bounded {
		poll = o.ClusterPoll
	}
	p := &place{name: e.Name(), executor: e, patience: callPatience, turns: newTurns(e, o.ReserveAfter)}
	if p.remote, _ = e.(app.Remote); p.remote != nil {
		p.patience = remotePatience
	}
	p.watcher = newWatcher(e, poll, p.patience, o.Log)
	return p
}

// starts is how many more jobs may be claimed now.
func (p *place) starts() int {
	switch {
	case p.unknown > 0:
		return 0
	case p.remote == nil:
		return maxPreparing - p.preparing
	}
	return max(0, min(maxRemotePreparing-p.preparing, p.room()))
}

// room is how many more tasks a cluster is to get now.
func (p *place) room() int {
	most := p.remote.MaxTasks()
	left := most - p.inHand
	if left < most/10 && time.Since(p.filled) < topUpEvery {
		return 0
	}
	return left
}

// take counts a job that has room.
func (p *place) take() {
	p.inHand++
	if p.remote != nil && p.inHand >= p.remote.MaxTasks() {
		p.filled = time.Now()
	}
}

// atMost says why a job waits where a cluster has all the tasks that it may
// have, else "".
func (p *place) atMost() string {
	if p.remote == nil || p.room() > 0 {
		return ""
	}
	return fmt.Sprintf("waiting for its turn: the cluster may have %d jobs of this service at once, and has them", p.remote.MaxTasks())
}

// unheard says why no job starts before every task found at the start was seen,
// else "": till then it is not known what is in use.
func (p *place) unheard() string {
	switch {
	case p.unknown == 0:
		return ""
	case p.remote == nil:
		return "waiting for the server to find what runs since before its start"
	}
	return "waiting for the cluster to tell how the jobs stand that it has since before the server's start"
}

// event is what an attempt tells the loop.
type event struct {
	attempt *attempt
	kind    eventKind
	reason  string // of evWaiting
}

type eventKind int

const (
	evClaimed  eventKind = iota // the job's record says that it is ours
	evSeen                      // the task of a job found at the start was seen
	evPrepared                  // the task was started
	evWaiting                   // why the task does not run yet
	evFreed                     // the task is gone, its room is free
	evDone                      // the attempt is settled, or was never ours
)

// loop looks after the queue until ctx ends.
func (r *Runner) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	changed := true // what ActiveJobs gives may have
	for {
		begin := time.Now()
		if changed {
			changed = !r.reconcile(ctx)
		}
		if !changed {
			r.rounds(ctx)
		}
		r.pause(ctx, time.Since(begin))
		timer.Reset(r.nextRound(changed))
		select {
		case <-ctx.Done():
			return
		case <-r.jobs.Wake():
			changed = true
		case <-timer.C:
			changed = true
		case e := <-r.events:
			r.handle(e)
		}
		changed = r.drain() || changed
	}
}

// pause lets the loop take no more than a fifth of the time when many things
// happen at once. After a quiet moment it does not wait.
func (r *Runner) pause(ctx context.Context, took time.Duration) {
	if took < time.Millisecond {
		return
	}
	sleep(ctx, min(4*took, longestPause))
}

func (r *Runner) nextRound(failed bool) time.Duration {
	next := roundEvery
	if failed {
		next = lookEvery
	}
	for _, p := range r.places {
		switch {
		case p.failed:
			next = lookEvery
		case p.busy:
			return 0
		case p.stale:
			next = min(next, max(0, lookEvery-time.Since(p.looked)))
		}
	}
	return next
}

// drain handles all that has happened before the next round, and reports
// whether the service woke the runner too.
func (r *Runner) drain() (woken bool) {
	for {
		select {
		case <-r.jobs.Wake():
			woken = true
		case e := <-r.events:
			r.handle(e)
		default:
			return woken
		}
	}
}

func (r *Runner) handle(e event) {
	a := e.attempt
	switch e.kind {
	case evClaimed:
		a.claimed = true
	case evSeen:
		r.seen(a)
	case evPrepared:
		r.prepared(a)
	case evWaiting:
		a.reason, a.place.stale = e.reason, true
	case evFreed:
		r.free(a)
	case evDone:
		r.seen(a)
		r.prepared(a)
		r.free(a)
		delete(r.held, a.id)
	}
}

func (r *Runner) seen(a *attempt) {
	if a.unknown {
		a.unknown, a.reason = false, ""
		a.place.unknown--
	}
}

func (r *Runner) prepared(a *attempt) {
	if a.preparing {
		a.preparing = false
		a.place.preparing--
	}
}

func (r *Runner) free(a *attempt) {
	if a.holds {
		a.holds = false
		a.place.inHand--
		a.place.turns.end(a.user, a.needs, a.gpus)
	}
}
