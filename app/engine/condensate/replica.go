package condensate

import (
	"fmt"
	"path/filepath"
	"strconv"

	"molrun/app/engine/md"

	"molrun/app/engine/store"
	"molrun/app/engine/trajectory"
)

// replica is one run of the system: what it has shown, and, while it runs, its motion.
type replica struct {
	*system
	number     int        // from 1
	motion     *md.Motion // nil once the replica is finished
	trajectory *trajectory.DCD
	moved      float64 // nm along z by which the last sample lies in the middle of the box

	track       *Profile // of equilibration
	profile     *Profile // of what follows
	sizes       *sizes
	radius      []md.Series // of gyration, by component
	temperature md.Series
	bound       md.Series // fraction of chains with a contact to another one
	largest     md.Series // fraction of chains in the largest cluster
	near        md.Series // for two chains: whether their middles are within half an edge
	last        sample
}

// sample is the state of the system at one step.
type sample struct {
	temperature float64 // K
	clusters
}

func newReplica(y *system, number int) *replica {
	n := y.plan.samples()
	r := &replica{
		system: y, number: number,
		trajectory:  trajectory.NewDCD(y.mix.Size(), y.plan.frameEvery, y.Box),
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

// start places the chains and begins the trajectory.
func (r *replica) start(team *md.Team) error {
	low, high := 0.0, r.Box.Z
	if r.Protocol == Slab {
		low, high = (r.Box.Z-r.packHeight())/2, (r.Box.Z+r.packHeight())/2
	}
	x, err := md.Pack(r.mix, r.Seed, r.number, low, high)
	if err != nil {
		return err
	}
	r.motion = md.NewMotion(r.mix, team, r.Seed, r.number)
	if err := r.motion.Start(x); err != nil {
		return err
	}
	return r.trajectory.Create(r.trajectoryPath(), "chains in a box", madeBy)
}

// resume prepares a replica from a checkpoint.
func (r *replica) resume() error {
	if err := r.trajectory.Resume(r.trajectoryPath()); err != nil {
		return err
	}
	if r.motion == nil {
		return r.trajectory.Close()
	}
	return r.motion.Resume()
}

func (r *replica) trajectoryPath() string { return filepath.Join(r.folder, trajectoryName(r.number)) }

// step is the number of steps done.
func (r *replica) step() int64 {
	if r.motion == nil {
		return r.plan.steps
	}
	return r.motion.Step()
}

// advance computes at most so many steps.
func (r *replica) advance(most int64) error {
	step := r.step()
	r.motion.Pull(0)
	if step < r.plan.restrained {
		r.motion.Pull(r.restraint())
	}
	return r.motion.Advance(int(min(most, r.plan.untilEvent(step))))
}

// sample evaluates the present step, at which a sample is due, and adds it to the sums.
func (r *replica) sample(c *contacts, h *history) {
	step, x := r.step(), r.motion.Positions()
	kept := step > r.plan.discarded
	if r.Protocol == Slab {
		p := r.track
		if kept {
			p = r.profile
		}
		r.moved = p.Add(r.mix, x)
	}
	h.add(step, x, r.moved)
	r.last = sample{r.motion.Temperature(), c.look(x, kept)}
	if !kept {
		return
	}
	radii := make([]float64, r.mix.Chains())
	sums := make([]float64, len(r.Components))
	for k := range radii {
		radii[k] = r.mix.Chain(k).GyrationRadius(md.Of(r.mix, x, k))
		sums[r.kindOf[k]] += radii[k]
	}
	for k, c := range r.Components {
		r.radius[k].Add(sums[k] / float64(c.Copies))
	}
	centres := r.centres(x, r.moved)
	r.sizes.add(centres, radii)
	r.temperature.Add(r.last.temperature)
	r.bound.Add(r.last.bound)
	r.largest.Add(r.last.largest)
	if r.isPair() {
		r.near.Add(r.nearness(centres))
	}
}

// appendRow adds a line of timeseries.csv.
func (r *replica) appendRow(b []byte) []byte {
	b = fmt.Appendf(b, "%d,%.2f,%d,%.2f,%.3f,%.4f,%.4f\n", r.step(), float64(r.step())*md.TimeStep, r.number,
		r.last.temperature, r.motion.Sums().Energy()/float64(r.mix.Size()), r.last.bound, r.last.largest)
	return b
}

const (
	seriesHeader  = "step,time_ps,replica,temperature_K,epot_per_residue_kJ_mol,bound_fraction,largest_cluster\n"
	centresHeader = "step,replica,chain,component,x_nm,y_nm,z_nm\n"
)

// frame adds a frame to the trajectory and, if it is due, lines of centres.csv.
func (r *replica) frame(rows []byte) ([]byte, error) {
	x := r.motion.Positions()
	centres := r.centres(x, r.moved)
	whole := r.whole(x, centres)
	if err := r.trajectory.Append(whole, md.Vec{}); err != nil {
		return rows, err
	}
	if r.trajectory.Frames%r.plan.centreEvery == 0 {
		for k, c := range centres {
			rows = strconv.AppendInt(rows, r.step(), 10)
			rows = fmt.Appendf(rows, ",%d,%d,%s,%.3f,%.3f,%.3f\n", r.number, k+1, r.Components[r.kindOf[k]].Name, c.X, c.Y, c.Z)
		}
	}
	if r.number > 1 || r.trajectory.Frames > 1 {
		return rows, nil
	}
	for i := range whole {
		whole[i] = md.Vec{}.AddScaled(trajectory.Angstrom, whole[i])
	}
	return rows, store.WriteFile(filepath.Join(r.folder, topologyFile), trajectory.PDB(r.letters, whole))
}

// finish frees what a finished replica no longer needs.
func (r *replica) finish() error {
	r.motion, r.track = nil, nil
	return r.trajectory.Close()
}

// archive stores or restores what was seen and, unless the replica is finished, its state.
func (r *replica) archive(a *store.Archive, team *md.Team) {
	running := r.motion != nil
	if a.Flag(&running); a.Reading() && running {
		r.motion = md.NewMotion(r.mix, team, r.Seed, r.number)
	}
	if running {
		r.motion.Archive(a)
		r.track.Archive(a)
	}
	a.Integer(&r.trajectory.Frames)
	r.profile.Archive(a)
	r.sizes.archive(a)
	for k := range r.radius {
		r.radius[k].Archive(a)
	}
	for _, s := range []*md.Series{&r.temperature, &r.bound, &r.largest, &r.near} {
		s.Archive(a)
	}
}
