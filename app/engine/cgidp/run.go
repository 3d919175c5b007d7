package cgidp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"time"

	"molrun/app/base/unit"
	"molrun/app/engine/store"
)

const (
	reportEvery = time.Second      // lines of progress
	firstSave   = time.Second      // until the first results so far and checkpoint
	saveEvery   = 30 * time.Second // between them later
)

// run is one call of Run.
type run struct {
	settings *Settings
	dir      string
	log      io.Writer
	chains   []*chain
	progress progress

	saveEvery time.Duration
}

// Run simulates all sequences. It writes results below dir and progress to log.
// Soon after ctx ends it returns the error of ctx and leaves the results so far,
// marked as not complete. If dir holds checkpoints of the same settings, Run
// continues from there, and the results are those of a run that never stopped.
func Run(ctx context.Context, s *Settings, dir string, log io.Writer) error {
	return newRun(s, dir, log).run(ctx)
}

func newRun(s *Settings, dir string, log io.Writer) *run {
	r := &run{settings: s, dir: dir, log: log, saveEvery: saveEvery}
	for i := range s.Sequences {
		r.chains = append(r.chains, newChain(s, i, dir))
	}
	return r
}

func (r *run) run(ctx context.Context) error {
	if len(r.chains) == 0 {
		return fmt.Errorf("the settings name the FASTA file %q, but its content was not given", r.settings.fasta)
	}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return err
	}
	r.announce()
	if err := r.resume(); err != nil {
		return err
	}
	r.progress = progress{log: r.log, chains: r.chains, started: time.Now()}
	r.progress.before = r.progress.done()
	if err := r.work(ctx); err != nil {
		return r.giveUp(ctx, err)
	}
	return r.conclude()
}

// resume continues from the checkpoints in the folder.
func (r *run) resume() error {
	for _, c := range r.chains {
		err := c.restore(r.log)
		if err == nil && c.complete() {
			err = c.finish()
		}
		if err != nil {
			return fmt.Errorf("sequence %s: %w", c.Name, err)
		}
	}
	return nil
}

func (r *run) announce() {
	s := r.settings
	fmt.Fprintf(r.log, "%s %s, %s: %s, %s each, %s; about %s on an idle machine\n", engineName, engineVersion, modelName,
		unit.Count(len(s.Sequences), "sequence"), unit.Count(s.Replicas, "replica"), unit.Count(s.Cores, "core"),
		store.ShortDuration(s.Estimate().Seconds()))
	for _, w := range s.Warnings() {
		fmt.Fprintf(r.log, "warning: %s\n", w)
	}
}

// work computes all replicas, one per core at a time, and returns the first error.
func (r *run) work(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan assignment)
	var workers sync.WaitGroup
	for range r.settings.Cores {
		workers.Go(func() {
			for a := range queue {
				if err := r.compute(ctx, a); err != nil {
					cancel(err)
				}
			}
		})
	}
	watching, stopWatching := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() {
		if err := r.watch(watching); err != nil {
			cancel(err)
		}
	})
	r.assign(ctx, queue)
	workers.Wait()
	stopWatching()
	watcher.Wait()
	return context.Cause(ctx)
}

// assignment is a replica to compute.
type assignment struct {
	chain  *chain
	number int
}

func (a assignment) wrap(err error) error {
	return fmt.Errorf("sequence %s, replica %d: %w", a.chain.Name, a.number, err)
}

// assign queues replicas in order until there are no more or ctx ends.
func (r *run) assign(ctx context.Context, queue chan<- assignment) {
	defer close(queue)
	for _, c := range r.chains {
		for _, number := range c.pending() {
			select {
			case queue <- assignment{c, number}:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (r *run) compute(ctx context.Context, a assignment) error {
	rep, err := a.chain.begin(a.number)
	if err != nil {
		return a.wrap(err)
	}
	failed := rep.run(ctx)
	completed, err := a.chain.end(rep)
	switch {
	case failed != nil:
		return a.wrap(failed)
	case err != nil:
		return a.wrap(err)
	case completed:
		return a.chain.finish()
	}
	return nil
}

// watch reports and saves until ctx ends. Saves come at growing intervals: a new
// run soon has results to look at, and loses little when it is killed.
func (r *run) watch(ctx context.Context) error {
	pause := min(firstSave, r.saveEvery)
	report, save := time.NewTicker(reportEvery), time.NewTimer(pause)
	defer report.Stop()
	defer save.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-report.C:
			r.progress.report()
		case <-save.C:
			if err := r.saveStarted(); err != nil {
				return err
			}
			pause = min(2*pause, r.saveEvery)
			save.Reset(pause)
		}
	}
}

// saveStarted saves the results so far of unfinished chains.
func (r *run) saveStarted() error {
	for _, c := range r.chains {
		if err := c.saveSoFar(); err != nil {
			return fmt.Errorf("sequence %s: %w", c.Name, err)
		}
	}
	return nil
}

// giveUp saves the results so far and returns why the run ended.
func (r *run) giveUp(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if saving := r.saveStarted(); saving != nil {
		return errors.Join(err, saving)
	}
	return err
}

// conclude writes the tables over all sequences.
func (r *run) conclude() error {
	var all []*summary
	for _, c := range r.chains {
		all = append(all, c.final)
	}
	if err := writeTables(r.dir, all); err != nil {
		return err
	}
	for _, c := range r.chains {
		if err := store.RemoveCheckpoints(c.folder); err != nil {
			return err
		}
	}
	for _, s := range all {
		r.logResults(s)
	}
	r.progress.line(1, "done in "+store.ShortDuration(time.Since(r.progress.started).Seconds()))
	return nil
}

// logResults returns the results of a sequence in a line.
func (r *run) logResults(s *summary) {
	rg, ree, exponent := s.Results.Rg, s.Results.Ree, ""
	if nu := float64(s.Results.Nu); !math.IsNaN(nu) { // short chains have none
		exponent = ", nu " + store.WithError(nu, float64(s.Results.NuSE))
	}
	fmt.Fprintf(r.log, "%s: Rg %s nm, end to end %s nm%s\n", s.Name,
		store.WithError(float64(rg.Mean), float64(rg.SE)), store.WithError(float64(ree.Mean), float64(ree.SE)), exponent)
	for _, w := range s.Warnings {
		fmt.Fprintf(r.log, "warning: %s: %s\n", s.Name, w)
	}
}
