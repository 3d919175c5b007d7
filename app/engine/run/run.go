package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"
	"time"

	"molrun/app/engine/store"
)

// Run computes parts and their replicas in order.
type Run[R Replica] struct {
	Parts     []*Part[R]
	Workers   int // replicas computed in parallel
	Log       io.Writer
	SaveEvery time.Duration // maximum time between saves

	started time.Time
	before  float64 // fraction already done when this process started

	taking       sync.Mutex // guards the fields below
	part, number int        // last replica started
}

const (
	reportEvery = time.Second // interval of progress lines
	firstSaves  = 64          // the first save comes after SaveEvery/firstSaves
)

// Compute computes all parts, resuming from checkpoints if there are any. When ctx is
// canceled, it soon saves the results so far and returns the error of ctx.
func (r *Run[R]) Compute(ctx context.Context) error {
	for _, p := range r.Parts {
		if err := p.restore(r.Log); err != nil {
			return p.wrap(0, err)
		}
	}
	r.started, r.before = time.Now(), r.fractionDone()
	err := r.runReplicas(ctx)
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
		return errors.Join(ended, r.saveStarted())
	}
	return err
}

// End removes the checkpoints. Call it after all results are written.
func (r *Run[R]) End() error {
	for _, p := range r.Parts {
		if err := removeCheckpoints(p.Folder); err != nil {
			return err
		}
	}
	r.line(1, "done in "+store.ShortDuration(time.Since(r.started).Seconds()))
	return nil
}

// runReplicas runs the workers. It returns the first error, after which all workers stop.
func (r *Run[R]) runReplicas(ctx context.Context) error {
	failed, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	stopped := func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return context.Cause(failed)
	}
	var workers sync.WaitGroup
	for range r.Workers {
		workers.Go(func() {
			if err := r.computeNext(stopped); err != nil {
				cancel(err)
			}
		})
	}
	computed := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		if err := r.watch(computed); err != nil {
			cancel(err)
		}
	})
	workers.Wait()
	close(computed)
	watcher.Wait()
	return context.Cause(failed)
}

// computeNext computes replicas until there are none left.
func (r *Run[R]) computeNext(stopped func() error) error {
	for {
		p, rep, err := r.nextReplica()
		if err != nil || p == nil {
			return err
		}
		for rep.base().Reached() < p.Steps {
			if err := stopped(); err != nil {
				return err
			}
			if err := burst(rep); err != nil {
				return p.wrap(rep.base().Number, err)
			}
		}
		if err := p.finishReplica(rep); err != nil {
			return p.wrap(rep.base().Number, err)
		}
	}
}

// nextReplica starts the next replica; p is nil if there are none left.
func (r *Run[R]) nextReplica() (p *Part[R], rep R, err error) {
	r.taking.Lock()
	defer r.taking.Unlock()
	for ; r.part < len(r.Parts); r.part, r.number = r.part+1, 0 {
		p := r.Parts[r.part]
		if r.number < p.Count {
			r.number++
			rep, err := p.startReplica(r.number)
			return p, rep, p.wrap(r.number, err)
		}
	}
	return nil, rep, nil
}

// wrap adds the part and replica to an error; replica is 0 if the error concerns all
// replicas.
func (p *Part[R]) wrap(replica int, err error) error {
	switch {
	case err == nil || p.Name == "" && replica == 0:
		return err
	case p.Name == "":
		return fmt.Errorf("replica %d: %w", replica, err)
	case replica == 0:
		return fmt.Errorf("sequence %s: %w", p.Name, err)
	}
	return fmt.Errorf("sequence %s, replica %d: %w", p.Name, replica, err)
}

// watch reports progress and saves until computed is closed. Saves come at growing
// intervals, so that a new run soon has results to show and loses little if it is killed.
func (r *Run[R]) watch(computed <-chan struct{}) error {
	pause := r.SaveEvery / firstSaves
	report, save := time.NewTicker(reportEvery), time.NewTimer(pause)
	defer report.Stop()
	defer save.Stop()
	for {
		select {
		case <-computed:
			return nil
		case <-report.C:
			r.report()
		case <-save.C:
			if err := r.saveStarted(); err != nil {
				return err
			}
			pause = min(2*pause, r.SaveEvery)
			save.Reset(pause)
		}
	}
}

func (r *Run[R]) saveStarted() error {
	for _, p := range r.Parts {
		if err := p.saveSoFar(); err != nil {
			return p.wrap(0, err)
		}
	}
	return nil
}

// fractionDone returns the completed fraction of the work.
func (r *Run[R]) fractionDone() float64 {
	var done, all float64
	for _, p := range r.Parts {
		all += p.Cost * float64(p.Count)
		done += p.Cost * p.replicasDone()
	}
	return done / all
}

func (p *Part[R]) replicasDone() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished {
		return float64(p.Count)
	}
	steps := int64(0)
	for _, r := range p.begun {
		steps += r.base().Reached()
	}
	return float64(steps) / float64(p.Steps)
}

// report writes a progress line about the first replica that has not finished.
func (r *Run[R]) report() {
	for _, p := range r.Parts {
		for _, rep := range p.Begun() {
			if rep.base().Reached() < p.Steps {
				done := r.fractionDone()
				r.line(done, r.status(p, rep)+r.remaining(done))
				return
			}
		}
	}
}

func (r *Run[R]) line(done float64, text string) {
	fmt.Fprintf(r.Log, "molrun:progress %s %s\n", strconv.FormatFloat(math.Floor(done*1e4)/1e4, 'f', -1, 64), text)
}

func (r *Run[R]) status(p *Part[R], rep R) string {
	b := rep.base()
	b.Lock()
	defer b.Unlock()
	text := ""
	if len(r.Parts) > 1 {
		text = p.Name + " "
	}
	step := rep.Step()
	return text + fmt.Sprintf("step %d/%d %.1f%% replica %d/%d %s",
		step, p.Steps, 100*float64(step)/float64(p.Steps), b.Number, p.Count, rep.Status())
}

// remaining returns the estimated time left at the current speed.
func (r *Run[R]) remaining(done float64) string {
	if done <= r.before {
		return ""
	}
	return " ETA " + store.ShortDuration(time.Since(r.started).Seconds()*(1-done)/(done-r.before))
}
