package cgidp

import (
	"context"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

const (
	burstSteps  = 500    // steps between looks at cancellation
	maxRows     = 20_000 // of timeseries.csv
	pairSpacing = 1000   // least steps between samples of pairs
)

// plan says what happens at which step. All replicas of a sequence share it.
type plan struct {
	steps       int64
	discarded   int64 // steps of equilibration
	sampleEvery int64
	frameEvery  int64
	rowEvery    int64 // samples between rows of timeseries.csv
	pairEvery   int64 // samples between those of pairSums
}

func newPlan(s *Settings, q *Sequence) plan {
	samples := q.Steps / s.SampleEvery * int64(s.Replicas)
	return plan{
		steps:       q.Steps,
		discarded:   discarded(s.Equilibration, q.Steps),
		sampleEvery: s.SampleEvery,
		frameEvery:  q.FrameEvery,
		rowEvery:    max(1, (samples+maxRows-1)/maxRows),
		pairEvery:   (pairSpacing + s.SampleEvery - 1) / s.SampleEvery,
	}
}

// kept is how many samples come after equilibration.
func (p plan) kept() int64 { return p.steps/p.sampleEvery - p.discarded/p.sampleEvery }

// untilEvent is how many steps from a step to the next sample or frame, or to
// the end.
func (p plan) untilEvent(step int64) int64 {
	return min(p.sampleEvery-step%p.sampleEvery, p.frameEvery-step%p.frameEvery, p.steps-step)
}

// sample is the state of a chain at one step.
type sample struct {
	rg, ree     float64 // nm
	temperature float64 // K
}

// replica is one run of a chain: its motion, what was gathered and where frames
// go. Its lock is held during a burst of steps; between bursts others may read.
type replica struct {
	sync.Mutex
	*dynamics
	plan       plan
	number     int    // from 1
	folder     string // of the sequence
	trajectory *trajectory
	rows       []byte // lines of timeseries.csv
	last       sample
	busy       time.Duration

	rg, ree, kinetic series
	pairs            *pairSums
}

func (c *chain) newReplica(number int) (*replica, error) {
	r := c.blankReplica(number)
	if err := r.start(); err != nil {
		return nil, err
	}
	r.last = r.sample()
	return r, r.trajectory.create(r.trajectoryPath(), c.Name)
}

// blankReplica has no start structure and no open trajectory yet.
func (c *chain) blankReplica(number int) *replica {
	n := c.model.size()
	r := &replica{
		dynamics:   blankDynamics(c.model, newSource(c.settings.Seed, c.index, number)),
		plan:       c.plan,
		number:     number,
		folder:     c.folder,
		trajectory: newTrajectory(n, c.plan.frameEvery),
		pairs:      newPairSums(n),
	}
	r.rg.half = c.plan.kept() / 2
	r.ree.half, r.kinetic.half = r.rg.half, r.rg.half
	return r
}

func (r *replica) trajectoryPath() string { return filepath.Join(r.folder, trajectoryName(r.number)) }

// wake makes a replica from a checkpoint ready to go on.
func (r *replica) wake() error {
	if err := r.trajectory.resume(r.trajectoryPath()); err != nil {
		return err
	}
	r.last = r.sample()
	if r.done() {
		return r.trajectory.close()
	}
	return r.dynamics.wake()
}

func (r *replica) done() bool { return r.step == r.plan.steps }

// run goes on until the last step, an error, or the end of ctx.
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
		n := min(left, r.plan.untilEvent(r.step))
		if err := r.advance(int(n)); err != nil {
			return err
		}
		left -= n
		if err := r.record(); err != nil {
			return err
		}
	}
	return nil
}

// record keeps what is due at the present step.
func (r *replica) record() error {
	if r.step%r.plan.sampleEvery == 0 {
		r.recordSample()
	}
	if r.step%r.plan.frameEvery == 0 {
		return r.recordFrame()
	}
	return nil
}

func (r *replica) sample() sample {
	return sample{r.model.gyrationRadius(r.x), endToEnd(r.x), r.temperature()}
}

func (r *replica) recordSample() {
	r.last = r.sample()
	if r.step/r.plan.sampleEvery%r.plan.rowEvery == 0 {
		r.appendRow()
	}
	if r.step <= r.plan.discarded {
		return
	}
	if r.rg.all().n%r.plan.pairEvery == 0 {
		r.pairs.add(r.x)
	}
	r.rg.add(r.last.rg)
	r.ree.add(r.last.ree)
	r.kinetic.add(r.last.temperature)
}

const seriesHeader = "step,time_ps,replica,rg_nm,ree_nm,epot_kJ_mol,temperature_K\n"

func (r *replica) appendRow() {
	b := strconv.AppendInt(r.rows, r.step, 10)
	field := func(v float64, decimals int) {
		b = strconv.AppendFloat(append(b, ','), v, 'f', decimals, 64)
	}
	field(float64(r.step)*timeStep, 2)
	b = strconv.AppendInt(append(b, ','), int64(r.number), 10)
	field(r.last.rg, 4)
	field(r.last.ree, 4)
	field(r.field.energy(r.x).total(), 3)
	field(r.last.temperature, 2)
	r.rows = append(b, '\n')
}

func (r *replica) recordFrame() error {
	centre := r.model.centre(r.x)
	if err := r.trajectory.append(r.x, centre); err != nil {
		return err
	}
	if r.number > 1 || r.trajectory.frames > 1 {
		return nil
	}
	first := make([]vec, len(r.x))
	for i := range first {
		first[i] = vec{}.plus(angstrom, r.x[i].sub(centre))
	}
	return writeFile(filepath.Join(r.folder, topologyFile), topologyPDB(r.model.types, first))
}
