package runner

import (
	"context"
	"time"

	"molrun/app/job/eta"
	"molrun/app/runner/schedule"
)

const (
	scanEvery = schedule.ScanEvery
	// roundEvery is the interval between rounds when nothing happens.
	roundEvery = 15 * time.Second
	// longestPause bounds how long the loop pauses after much work.
	longestPause = 250 * time.Millisecond
)

// loop starts jobs until ctx ends.
func (r *Runner) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	changed := true // the set of claimed jobs may have changed
	for {
		begin := time.Now()
		if changed {
			changed = !r.reconcile(ctx)
		}
		if !changed {
			r.rounds(ctx)
		}
		for _, e := range r.executors {
			r.options.Load(e.Name(), e.running, e.share.Used())
		}
		// When many events arrive at once, the loop uses at most a fifth of the time.
		// After a quiet period it does not wait.
		if took := time.Since(begin); took >= time.Millisecond {
			sleep(ctx, min(4*took, longestPause))
		}
		timer.Reset(r.nextRound(changed))
		select {
		case <-ctx.Done():
			return
		case <-r.jobs.Wake():
			changed = true
		case <-timer.C:
			changed = true
		case e := <-r.events:
			r.handleEvent(e)
		}
		changed = r.drainEvents() || changed
	}
}

func (r *Runner) nextRound(failed bool) time.Duration {
	next := roundEvery
	if failed {
		next = scanEvery
	}
	for _, e := range r.executors {
		switch {
		case e.failed:
			next = scanEvery
		case e.busy:
			return 0
		case e.stale:
			next = min(next, max(0, scanEvery-time.Since(e.scanned)))
		}
	}
	return next
}

// drainEvents handles all pending events before the next round, and reports whether the
// service woke the runner too.
func (r *Runner) drainEvents() (woken bool) {
	for {
		select {
		case <-r.jobs.Wake():
			woken = true
		case e := <-r.events:
			r.handleEvent(e)
		default:
			return woken
		}
	}
}

func (r *Runner) handleEvent(e event) {
	a := e.attempt
	switch e.kind {
	case evClaimed:
		a.claimed = true
	case evSeen:
		a.endUnseen()
	case evPrepared:
		a.endPreparing()
	case evWaiting:
		a.reason, a.executor.stale = e.reason, true
	case evFreed:
		a.releaseSlot()
	case evWorkerStarted:
		e.worker.hasSlot, a.hasSlot = a.hasSlot, false
		e.worker.exclusive.Store(a.executor.hasNoCompetitor(e.worker))
		a.executor.workers[e.worker] = true
		e.worker.noteGPUFault()
	case evJoined:
		if other := r.active[a.id]; other != nil {
			other.overtaken.Store(true)
		}
		r.active[a.id] = a
		a.noteGPUFault()
	case evGPUs:
		r.updateGPUs(e.executor)
	case evWorkerEnded:
		r.workerEnded(e.worker)
	case evDone:
		a.endUnseen()
		a.endPreparing()
		a.releaseSlot()
		if r.active[a.id] == a { // otherwise a worker has already claimed the job
			delete(r.active, a.id)
		}
	}
}

// workerEnded releases the slot of a worker.
func (r *Runner) workerEnded(p *worker) {
	if p.hasSlot {
		p.hasSlot = false
		p.executor.running--
		p.executor.share.ReleaseSlot(p.lease)
	}
	delete(p.executor.workers, p)
	r.workerCounts.Remove(p.id)
}

func (a *attempt) endUnseen() {
	if a.unseen {
		a.unseen, a.reason = false, eta.Reason{}
		a.executor.unseen--
	}
}

func (a *attempt) endPreparing() {
	if a.preparing {
		a.preparing = false
		a.executor.preparing--
	}
}

func (a *attempt) releaseSlot() {
	if a.hasSlot {
		a.hasSlot = false
		a.executor.running--
		a.executor.share.ReleaseSlot(a.lease)
	}
}
