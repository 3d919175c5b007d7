package cgidp

import (
	"context"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"molrun/app/engine/md"
	"molrun/app/engine/store"
	"molrun/app/engine/trajectory"
)

// burstSteps is the number of steps between looks at cancellation.
const burstSteps = 500

// replica is one run of a chain: its dynamics, the statistics and the trajectory.
// Its lock is held during a burst of steps; between bursts others may read.
type replica struct {
	sync.Mutex
	*md.Dynamics
	*system
	number     int // from 1
	trajectory *trajectory.DCD
	rows       []byte // lines of timeseries.csv
	last       sample
	busy       time.Duration

	rg, ree, kinetic md.Series
	pairs            *md.PairSums // nil once the chain has taken them over
	parts            *md.ScalingParts
}

// sample is the state of a chain at one step.
type sample struct {
	rg, ree     float64 // nm
	temperature float64 // K
}

// newReplica returns a replica without a start structure and an open trajectory:
// start gives it both, or archive and resume restore them.
func newReplica(s *system, number int) *replica {
	n, samples := s.model.Size(), s.plan.samples()
	return &replica{
		Dynamics:   md.NewDynamics(s.model, md.NewRandom(s.settings.Seed, s.index, number)),
		system:     s,
		number:     number,
		trajectory: trajectory.NewDCD(n, s.plan.frameEvery, md.Vec{}),
		rg:         md.NewSeries(samples),
		ree:        md.NewSeries(samples),
		kinetic:    md.NewSeries(samples),
		pairs:      md.NewPairSums(n),
		parts:      md.NewScalingParts(n, s.plan.pairs()),
	}
}

func (r *replica) start() error {
	if err := r.Start(); err != nil {
		return err
	}
	r.last = r.sample()
	return r.trajectory.Create(r.trajectoryPath(), r.Name, madeBy)
}

// resume prepares a replica from a checkpoint for its next step.
func (r *replica) resume() error {
	if err := r.trajectory.Resume(r.trajectoryPath()); err != nil {
		return err
	}
	r.last = r.sample()
	if r.done() {
		return r.trajectory.Close()
	}
	return r.Resume()
}

func (r *replica) trajectoryPath() string { return filepath.Join(r.folder, trajectoryName(r.number)) }

func (r *replica) done() bool { return r.Step() == r.plan.steps }

// finished reports whether all steps are done. It takes the lock.
func (r *replica) finished() bool {
	r.Lock()
	defer r.Unlock()
	return r.done()
}

// run continues until the last step, an error, or the end of ctx.
func (r *replica) run(ctx context.Context) error {
	for !r.done() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.burst(); err != nil {
			return err
		}
	}
	return nil
}

func (r *replica) burst() error {
	r.Lock()
	defer r.Unlock()
	began := time.Now()
	defer func() { r.busy += time.Since(began) }()
	for left := int64(burstSteps); left > 0 && !r.done(); {
		n := min(left, r.plan.untilEvent(r.Step()))
		if err := r.Advance(int(n)); err != nil {
			return err
		}
		left -= n
		if err := r.record(); err != nil {
			return err
		}
	}
	return nil
}

// record saves what is due at the present step.
func (r *replica) record() error {
	if r.Step()%r.plan.sampleEvery == 0 {
		r.recordSample()
	}
	if r.Step()%r.plan.frameEvery == 0 {
		return r.recordFrame()
	}
	return nil
}

func (r *replica) sample() sample {
	x := r.Positions()
	return sample{r.model.GyrationRadius(x), md.EndToEnd(x), r.Temperature()}
}

func (r *replica) recordSample() {
	r.last = r.sample()
	if r.Step()/r.plan.sampleEvery%r.plan.rowEvery == 0 {
		r.appendRow()
	}
	if r.Step() <= r.plan.discarded {
		return
	}
	if r.rg.Count()%r.plan.pairEvery == 0 {
		r.pairs.Add(r.Positions())
		r.parts.Update(r.pairs)
	}
	r.rg.Add(r.last.rg)
	r.ree.Add(r.last.ree)
	r.kinetic.Add(r.last.temperature)
}

const seriesHeader = "step,time_ps,replica,rg_nm,ree_nm,epot_kJ_mol,temperature_K\n"

func (r *replica) appendRow() {
	b := strconv.AppendInt(r.rows, r.Step(), 10)
	field := func(v float64, decimals int) {
		b = strconv.AppendFloat(append(b, ','), v, 'f', decimals, 64)
	}
	field(float64(r.Step())*md.TimeStep, 2)
	b = strconv.AppendInt(append(b, ','), int64(r.number), 10)
	field(r.last.rg, 4)
	field(r.last.ree, 4)
	field(r.PotentialEnergy(), 3)
	field(r.last.temperature, 2)
	r.rows = append(b, '\n')
}

func (r *replica) recordFrame() error {
	x := r.Positions()
	centre := r.model.Centre(x)
	if err := r.trajectory.Append(x, centre); err != nil {
		return err
	}
	if r.number > 1 || r.trajectory.Frames > 1 {
		return nil
	}
	first := make([]md.Vec, len(x))
	for i := range first {
		first[i] = md.Vec{}.AddScaled(trajectory.Angstrom, x[i].Sub(centre))
	}
	return store.WriteFile(filepath.Join(r.folder, topologyFile), trajectory.PDB([]string{r.Residues}, first))
}

// archive leaves out what follows from the positions, and pairs, which the chain
// may have taken over.
func (r *replica) archive(a *store.Archive) {
	r.Archive(a)
	a.Integer(&r.trajectory.Frames)
	a.Text(&r.rows)
	a.Duration(&r.busy)
	r.rg.Archive(a)
	r.ree.Archive(a)
	r.kinetic.Archive(a)
	r.parts.Archive(a)
}

// release frees what a finished replica no longer needs.
func (r *replica) release() {
	r.rows, r.parts = nil, nil
	r.Release()
}
