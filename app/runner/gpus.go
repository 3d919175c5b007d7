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

// errGPUFault says that a GPU of an attempt became faulty before its task was started.
var errGPUFault = errors.New("its GPU is faulty")

// stopLostEvery is how often a row that waits in a pilot is looked at whose GPU is lost: it is
// returned to the queue, or begins and must be stopped.
const stopLostEvery = time.Second

// followGPUs wakes the loop when the GPUs of an executor have changed, until ctx ends.
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

// holdGPUs tells an executor which GPUs jobs have.
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
		r.updateGPUs(e) // now that it knows which programs are jobs
	}
	e.holds, e.held = true, held
}

// updateGPUs takes over what an executor says about its GPUs, and tells the attempts that have
// faulty ones.
func (r *Runner) updateGPUs(e *executor) {
	capacity, _ := e.Capacity()
	e.faulty, e.stale = capacity.FaultyGPUs, true
	e.share.SetGPUs(capacity)
	for _, a := range r.active {
		if a.executor == e {
			a.noteGPUFault()
		}
	}
	for p := range e.pilots {
		p.noteGPUFault()
	}
}

// faultOf returns the fault of a GPU that a lease has, nil if all are healthy.
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

// noteGPUFault tells an attempt about a fault of its GPUs. The loop calls it.
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

// noteGPUFault tells a pilot likewise. It gets no more rows.
func (p *pilot) noteGPUFault() { p.gpuFault.Store(p.executor.faultOf(p.lease)) }

// stopLost stops the task of an attempt whose GPU is lost, and returns the time to do so again.
// A row that has not begun is left to its pilot, which returns it to the queue.
func (a *attempt) stopLost(ctx context.Context) <-chan time.Time {
	if a.pilot != nil && !a.stopAsked() && !task.Exists(a.dir, task.RunFile) {
		return time.After(stopLostEvery)
	}
	return a.stopTask(ctx)
}

// brokenGPU returns what is wrong with a GPU of an attempt that failed, as part of a sentence, ""
// if it failed by itself. The loss may be newer than the last look at the GPUs.
func (a *attempt) brokenGPU(ctx context.Context, o *app.Outcome) string {
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
			a.sendEvent(ctx, event{kind: evGPUs, executor: a.executor}) // before the job's next attempt gets a GPU
		}
	}
	if g == nil || !breaks[g.Fault] {
		return ""
	}
	return aboutGPU(g)
}

// whyLost says which GPU of the attempt is lost, "" if none is. It may be back by now.
func (a *attempt) whyLost() string {
	select {
	case <-a.gpuLost:
		return aboutGPU(a.lostGPU)
	default:
		return ""
	}
}

func aboutGPU(g *app.FaultyGPU) string { return "the GPU " + g.Name + " " + g.Text }

// breaks are the faults of a GPU that programs fail of.
var breaks = map[app.GPUFault]bool{app.GPULost: true, app.GPUNeedsReset: true, app.GPUMemoryError: true}

// lostWithGPU is the end of an attempt that failed because of its GPU: it was lost, through no
// fault of its program.
func lostWithGPU(o *app.Outcome, why string) app.Ending {
	interrupted := *o
	interrupted.Cause = app.CauseInterrupted
	return app.Ending{Lost: why, Outcome: &interrupted}
}

// returnUnbegun returns the rows of a pilot whose GPU is faulty to the queue that its process
// has not received. The process is asked for the others.
func (p *pilot) returnUnbegun() {
	if p.gpuFault.Load() == nil {
		return
	}
	p.exhausted = true
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.prepared {
		if !f.over() {
			f.giveBack("its GPU is faulty")
		}
	}
}
