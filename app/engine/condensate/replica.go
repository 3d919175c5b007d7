package condensate

import (
	"fmt"

	"molrun/app/engine/md"
	"molrun/app/engine/run"
	"molrun/app/engine/trajectory"
)

// burstBeads is the number of bead updates (beads times steps) per burst.
const burstBeads = 500_000

// replica is one independent run of the system: its observables and, while it runs, its
// dynamics.
type replica struct {
	run.Base
	*system
	simulation *simulation
	motion     *md.Motion // nil once the replica has finished
	shift      float64    // nm, shift along z that centers the last sample in the box
	centred    []byte     // pending rows of centres.csv

	track       *Profile // of the equilibration
	profile     *Profile // after equilibration
	sizes       *sizes
	radius      []md.Series // radius of gyration, by component
	temperature md.Series
	bound       md.Series // fraction of chains in contact with another chain
	largest     md.Series // fraction of chains in the largest cluster
	near        md.Series // for a pair of chains: 1 if their centers are within half a box edge
	last        sample
}

// sample is the state of the system at one step.
type sample struct {
	temperature float64 // K
	clusters
}

func newReplica(m *simulation, number int) *replica {
	y := m.system
	n := y.plan.samples()
	r := &replica{
		Base:        run.Base{Number: number, Folder: m.Folder, About: run.About{Origin: y.origin(), Box: y.Box}, Trajectory: trajectory.NewDCD(y.mix.Size(), y.plan.frameEvery, y.Box)},
		system:      y,
		simulation:  m,
		track:       NewProfile(y.mix),
		profile:     NewProfile(y.mix),
		sizes:       newSizes(y),
		radius:      make([]md.Series, len(y.Components)),
		temperature: md.NewSeries(n), bound: md.NewSeries(n), largest: md.NewSeries(n), near: md.NewSeries(n),
	}
	for k := range r.radius {
		r.radius[k] = md.NewSeries(n)
	}
	return r
}

// Start, like the methods below, implements run.Replica.
func (r *replica) Start() error {
	low, high := 0.0, r.Box.Z
	if r.Protocol == Slab {
		low, high = (r.Box.Z-r.packHeight())/2, (r.Box.Z+r.packHeight())/2
	}
	x, err := md.Pack(r.mix, r.Seed, r.Number, low, high)
	if err != nil {
		return err
	}
	r.motion = r.newMotion()
	if err := r.motion.Start(x); err != nil {
		return err
	}
	return r.Create("chains in a box")
}

func (r *replica) newMotion() *md.Motion {
	return md.NewMotion(r.mix, r.simulation.team, r.Seed, r.Number)
}

func (r *replica) Resume() error {
	if r.motion == nil {
		return nil
	}
	return r.motion.Resume()
}

func (r *replica) Step() int64 {
	if r.motion == nil {
		return r.plan.steps
	}
	return r.motion.Step()
}

func (r *replica) Burst() error {
	if err := r.advance(max(1, int64(burstBeads/r.mix.Size()))); err != nil {
		return err
	}
	return r.record()
}

// advance runs at most the given number of steps, and stops at the next event.
func (r *replica) advance(most int64) error {
	step := r.Step()
	r.motion.Pull(0)
	if step < r.plan.restrained {
		r.motion.Pull(r.restraint())
	}
	return r.motion.Advance(int(min(most, r.plan.untilEvent(step))))
}

// record saves the sample and the frame that are due at the current step.
func (r *replica) record() error {
	step := r.Step()
	if step%r.plan.sampleEvery != 0 {
		return nil
	}
	r.sample(r.simulation.contacts, r.simulation.history)
	if step/r.plan.sampleEvery%r.plan.rowEvery == 0 {
		r.appendRow()
	}
	if step%r.plan.frameEvery != 0 {
		return nil
	}
	return r.frame()
}

// sample evaluates the current step, at which a sample is due, and adds it to the sums.
func (r *replica) sample(c *contacts, h *history) {
	step, x := r.Step(), r.motion.Positions()
	kept := step > r.plan.discarded
	if r.Protocol == Slab {
		p := r.track
		if kept {
			p = r.profile
		}
		r.shift = p.AddFrame(r.mix, x)
	}
	h.addSample(step, x, r.shift)
	r.last = sample{r.motion.Temperature(), c.findClusters(x, kept)}
	if !kept {
		return
	}
	radii := make([]float64, r.mix.Chains())
	sums := make([]float64, len(r.Components))
	for k := range radii {
		radii[k] = r.mix.Chain(k).GyrationRadius(md.PartOf(r.mix, x, k))
		sums[r.kindOf[k]] += radii[k]
	}
	for k, c := range r.Components {
		r.radius[k].Add(sums[k] / float64(c.Copies))
	}
	centres := r.centres(x, r.shift)
	r.sizes.addFrame(centres, radii)
	r.temperature.Add(r.last.temperature)
	r.bound.Add(r.last.bound)
	r.largest.Add(r.last.largest)
	if r.isPair() {
		r.near.Add(r.isNearby(centres))
	}
}

// appendRow adds a row to timeseries.csv.
func (r *replica) appendRow() {
	r.Rows = fmt.Appendf(r.Rows, "%d,%.2f,%d,%.2f,%.3f,%.4f,%.4f\n", r.Step(), float64(r.Step())*md.TimeStep, r.Number,
		r.last.temperature, r.motion.Sums().Energy()/float64(r.mix.Size()), r.last.bound, r.last.largest)
}

const (
	seriesHeader  = "step,time_ps,replica,temperature_K,epot_per_residue_kJ_mol,bound_fraction,largest_cluster\n"
	centresHeader = "step,replica,chain,component,x_nm,y_nm,z_nm\n"
)

// frame adds a frame to the trajectory and, if due, rows to centres.csv.
func (r *replica) frame() error {
	x := r.motion.Positions()
	centres := r.centres(x, r.shift)
	if err := r.Frame(r.whole(x, centres), md.Vec{}, r.letters); err != nil {
		return err
	}
	if r.Trajectory.Frames%r.plan.centreEvery == 0 {
		for k, c := range centres {
			r.centred = fmt.Appendf(r.centred, "%d,%d,%d,%s,%.3f,%.3f,%.3f\n",
				r.Step(), r.Number, k+1, r.Components[r.kindOf[k]].Name, c.X, c.Y, c.Z)
		}
	}
	return nil
}

func (r *replica) Status() string {
	phase := ""
	switch step := r.Step(); {
	case step <= r.plan.restrained:
		phase = "drawn together, "
	case step <= r.plan.discarded:
		phase = "equilibrating, "
	}
	return fmt.Sprintf("%sT %.1f K largest cluster %.0f%% of the chains %.3g ns/day",
		phase, r.last.temperature, 100*r.last.largest, nanosecondsPerDay(float64(r.Step())/r.Busy.Seconds()))
}

func (r *replica) Archive(a *md.Archive) {
	running := r.motion != nil
	if a.Flag(&running); a.Reading() && running {
		r.motion = r.newMotion()
	}
	if running {
		r.motion.Archive(a)
		r.track.Archive(a)
	}
	a.Text(&r.centred)
	r.profile.Archive(a)
	r.sizes.archive(a)
	for k := range r.radius {
		r.radius[k].Archive(a)
	}
	for _, s := range []*md.Series{&r.temperature, &r.bound, &r.largest, &r.near} {
		s.Archive(a)
	}
}
