package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/runner/schedule"
	"molrun/app/task"
)

// errGPUFault means that a GPU of an attempt became faulty before its task was started.
var errGPUFault = errors.New("its GPU is faulty")

// stopLostEvery is how often a job that waits in a worker with a lost GPU is checked: it
// either is returned to the queue, or begins and must be stopped.
const stopLostEvery = time.Second

// followGPUs wakes the loop when an executor's GPUs have changed, until ctx ends.
func (r *Runner) followGPUs(ctx context.Context, e *executor) {
	for {
		select {
		case <-e.gpus.GPUsChanged():
		case <-ctx.Done():
			return
		}
		select {
		case r.events <- event{kind: evGPUs, executor: e}:
		case <-ctx.Done():
			return
		}
	}
}

// holdGPUs informs an executor which of its GPUs jobs hold.
func (r *Runner) holdGPUs(e *executor) {
	if e.gpus == nil {
		return
	}
	held := e.share.HeldGPUs()
	if e.holds && slices.Equal(held, e.held) {
		return
	}
	e.gpus.HoldGPUs(held)
	if first := !e.holds; first {
		r.updateGPUs(e) // now that it can tell which processes belong to jobs
	}
	e.holds, e.held = true, held
}

// updateGPUs updates the scheduler with the state of an executor's GPUs, and notifies the
// attempts and workers that hold faulty ones.
func (r *Runner) updateGPUs(e *executor) {
	capacity, _ := e.Capacity()
	e.faulty, e.stale = capacity.FaultyGPUs, true
	e.share.SetGPUs(capacity)
	for _, a := range r.active {
		if a.executor == e {
			a.noteGPUFault()
		}
	}
	for p := range e.workers {
		p.noteGPUFault()
	}
}

// faultOf returns the faulty GPU in a lease, or nil if all are healthy.
func (e *executor) faultOf(l schedule.Lease) *app.FaultyGPU {
	return faultAmong(e.faulty, l)
}

func faultAmong(faulty []app.FaultyGPU, l schedule.Lease) *app.FaultyGPU {
	for _, g := range faulty {
		if slices.Contains(l.GPUs, g.Name) {
			return &g
		}
	}
	return nil
}

// noteGPUFault notifies an attempt of a fault of its GPUs. It is called by the loop.
func (a *attempt) noteGPUFault() {
	g := a.executor.faultOf(a.lease)
	a.gpuFault.Store(g)
	if g != nil && g.Fault == app.GPULost {
		a.lostOnce.Do(func() {
			a.lostGPU = g
			close(a.gpuLost)
		})
	}
}

// noteGPUFault notifies a worker of a fault of its GPUs. The worker gets no more jobs.
func (p *worker) noteGPUFault() { p.gpuFault.Store(p.executor.faultOf(p.lease)) }

// stopLost stops the task of an attempt whose GPU is lost, and returns a timer for the
// next try. A job that has not begun is left to its worker, which returns it to the queue.
func (a *attempt) stopLost(ctx context.Context) <-chan time.Time {
	if a.worker != nil && !a.stopAsked() && !task.Exists(a.dir, task.RunFile) {
		return time.After(stopLostEvery)
	}
	return a.stopTask(ctx)
}

// gpuFailure describes the fault of a GPU of a failed attempt, for use in a sentence. It
// returns "" if no GPU is the cause. The GPU may have been lost after the last check.
func (a *attempt) gpuFailure(ctx context.Context, o *app.Outcome) string {
	if len(a.lease.GPUs) == 0 || a.executor.gpus == nil || a.stopAsked() {
		return ""
	}
	if why := a.whyLost(); why != "" {
		return why
	}
	g := a.gpuFault.Load()
	if g == nil && (explainable[o.Cause] || o.Cause == app.CauseTimeout) {
		if err := a.executor.gpus.CheckGPUs(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn().Err(err).Msg("could not check the GPU of a failed job")
		}
		capacity, _ := a.executor.Capacity()
		if g = faultAmong(capacity.FaultyGPUs, a.lease); g != nil {
			a.sendEvent(ctx, event{kind: evGPUs, executor: a.executor}) // processed before the job's next attempt gets a GPU
		}
	}
	if g == nil || !fatalFaults[g.Fault] {
		return ""
	}
	return aboutGPU(g)
}

// whyLost returns which GPU of the attempt is lost, or "" if none is. The GPU may be
// available again by now.
func (a *attempt) whyLost() string {
	select {
	case <-a.gpuLost:
		return aboutGPU(a.lostGPU)
	default:
		return ""
	}
}

func aboutGPU(g *app.FaultyGPU) string { return "the GPU " + g.Name + " " + g.Text }

// fatalFaults holds the GPU faults that make programs fail.
var fatalFaults = map[app.GPUFault]bool{app.GPULost: true, app.GPUNeedsReset: true, app.GPUMemoryError: true}

// lostWithGPU is the ending of an attempt that failed because of its GPU: it counts as
// lost, through no error of its program.
func lostWithGPU(o *app.Outcome, why string) app.Ending {
	interrupted := *o
	interrupted.Cause = app.CauseInterrupted
	return app.Ending{Lost: why, Outcome: &interrupted}
}

// returnUnbegun returns to the queue the jobs of a worker with a faulty GPU that its
// process has not received. The process is asked to return the others.
func (p *worker) returnUnbegun() {
	if p.gpuFault.Load() == nil {
		return
	}
	p.exhausted = true
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.prepared {
		if !f.hasEnded() {
			f.markReturned("its GPU is faulty")
		}
	}
}
