package condensate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"molrun/app/base/unit"
	"molrun/app/engine/md"
	"molrun/app/engine/store"
)

const (
	reportEvery = time.Second      // lines of progress
	firstSave   = time.Second      // until the first results so far and checkpoint
	saveEvery   = 60 * time.Second // between them later

	burstBeads = 500_000 // beads times steps between looks at the clock
)

// run is one call of Run. Nothing of it is used by two goroutines but the motion, whose team
// shares the work of a step.
type run struct {
	*system
	log  io.Writer
	team *md.Team

	replicas []*replica // those that have begun; all but the last one are finished
	contacts *contacts
	history  *history
	rows     []byte        // lines of timeseries.csv
	centred  []byte        // lines of centres.csv
	busy     time.Duration // spent on steps, by all processes that the run had

	progress  progress
	saveEvery time.Duration // longest time between saves
	pause     time.Duration // until the next
	saved     time.Time
}

// Run simulates the chains. It writes results below dir and progress to log. Soon after ctx
// ends it returns the error of ctx and leaves the results so far, marked as not complete. If
// dir holds a checkpoint of the same settings, Run continues from there, and the results are
// those of a run that never stopped.
func Run(ctx context.Context, s *Settings, dir string, log io.Writer) error {
	if len(s.Components) == 0 {
		return fmt.Errorf("the settings name the FASTA file %q, but its content was not given", s.fasta)
	}
	r := newRun(s, dir, log)
	defer r.team.Close()
	return r.run(ctx)
}

func newRun(s *Settings, dir string, log io.Writer) *run {
	r := &run{system: newSystem(s, dir), log: log, team: md.NewTeam(s.Cores), saveEvery: saveEvery, pause: firstSave}
	r.reset()
	return r
}

// reset leaves the run as new.
func (r *run) reset() {
	for _, rep := range r.replicas {
		if rep.trajectory.Opened() {
			rep.trajectory.Close()
		}
	}
	r.replicas, r.rows, r.centred, r.busy = nil, nil, nil, 0
	r.contacts, r.history = newContacts(r.system), newHistory(r.system)
}

func (r *run) run(ctx context.Context) error {
	if err := os.MkdirAll(r.folder, 0o755); err != nil {
		return err
	}
	r.announce()
	if err := r.restore(); err != nil {
		return err
	}
	r.progress = newProgress(r)
	r.saved, r.pause = time.Now(), min(r.pause, r.saveEvery)
	if err := r.simulate(ctx); err != nil {
		return r.giveUp(ctx, err)
	}
	return r.conclude()
}

func (r *run) announce() {
	s := r.Settings
	fmt.Fprintf(r.log, "%s %s, %s: %s, %s, in a box of %s x %s x %s nm (%s), %s, %s; about %s on an idle machine\n",
		engineName, engineVersion, modelName, unit.Count(s.chains(), "chain"), unit.Count(s.beads(), "residue"),
		short(s.Box.X), short(s.Box.Y), short(s.Box.Z), s.Protocol, unit.Count(s.Replicas, "replica"), unit.Count(s.Cores, "core"),
		store.ShortDuration(s.Estimate().Seconds()))
	if s.Protocol == Slab {
		fmt.Fprintf(r.log, "concentrations outside of the slab below about %.2g mM can only be bounded in this box\n", s.leastDilute())
	}
	for _, w := range s.Warnings {
		fmt.Fprintf(r.log, "warning: %s\n", w)
	}
}

func short(v float64) string { return fmt.Sprintf("%.4g", v) }

// simulate computes what is left of the replicas, one after the other.
func (r *run) simulate(ctx context.Context) error {
	for {
		rep, err := r.current()
		if err != nil || rep == nil {
			return err
		}
		if err := r.complete(ctx, rep); err != nil {
			return fmt.Errorf("replica %d: %w", rep.number, err)
		}
		if err := rep.finish(); err != nil {
			return err
		}
	}
}

// current returns the replica to go on with, a new one if need be; nil if there is none.
func (r *run) current() (*replica, error) {
	n := len(r.replicas)
	if n > 0 && r.replicas[n-1].motion != nil {
		return r.replicas[n-1], nil
	}
	if n == r.Replicas {
		return nil, nil
	}
	rep := newReplica(r.system, n+1)
	if err := rep.start(r.team); err != nil {
		return nil, err
	}
	r.replicas = append(r.replicas, rep)
	return rep, nil
}

// complete computes a replica up to its last step.
func (r *run) complete(ctx context.Context, rep *replica) error {
	burst := max(1, int64(burstBeads/r.mix.Size()))
	for rep.step() < r.plan.steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		began := time.Now()
		if err := rep.advance(burst); err != nil {
			return err
		}
		if err := r.record(rep); err != nil {
			return err
		}
		r.busy += time.Since(began)
		r.progress.report(r, rep)
		if err := r.saveIfDue(); err != nil {
			return err
		}
	}
	return nil
}

// record saves what is due at the present step.
func (r *run) record(rep *replica) error {
	step := rep.step()
	if step%r.plan.sampleEvery != 0 {
		return nil
	}
	rep.sample(r.contacts, r.history)
	if step/r.plan.sampleEvery%r.plan.rowEvery == 0 {
		r.rows = rep.appendRow(r.rows)
	}
	if step%r.plan.frameEvery != 0 {
		return nil
	}
	var err error
	r.centred, err = rep.frame(r.centred)
	return err
}

// saveIfDue saves at growing intervals: a new run soon has results to look at, and loses
// little when it is killed.
func (r *run) saveIfDue() error {
	if time.Since(r.saved) < r.pause {
		return nil
	}
	_, err := r.save(false)
	r.saved, r.pause = time.Now(), min(2*r.pause, r.saveEvery)
	return err
}

// giveUp saves the results so far and returns why the run ended.
func (r *run) giveUp(ctx context.Context, err error) error {
	if ctx.Err() == nil || len(r.replicas) == 0 {
		return err
	}
	_, saving := r.save(false)
	return errors.Join(ctx.Err(), saving)
}

func (r *run) conclude() error {
	s, err := r.save(true)
	if err != nil {
		return err
	}
	if err := store.RemoveCheckpoints(r.folder); err != nil {
		return err
	}
	for _, line := range s.sentences() {
		fmt.Fprintln(r.log, line)
	}
	for _, w := range s.Warnings {
		fmt.Fprintf(r.log, "warning: %s\n", w)
	}
	r.progress.line(r.log, 1, "done in "+store.ShortDuration(time.Since(r.progress.started).Seconds()))
	return nil
}
