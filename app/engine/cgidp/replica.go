package cgidp

import (
	"fmt"
	"strconv"
	"strings"

	"molrun/app/engine/md"
	"molrun/app/engine/run"
	"molrun/app/engine/store"
	"molrun/app/engine/trajectory"
)

// burstSteps is the number of steps of a burst.
const burstSteps = 500

// replica is one independent run of a chain: its dynamics, statistics and output files.
type replica struct {
	run.Base
	*md.Dynamics
	*system
	last sample

	rg, ree, kinetic md.Series
	pairs            *md.PairSums // nil after being merged into the chain
	parts            *md.ScalingParts
}

// sample is the state of a chain at one step.
type sample struct {
	rg, ree     float64 // nm
	temperature float64 // K
}

func newReplica(s *system, number int, folder string) *replica {
	n, samples := s.model.Size(), s.plan.samples()
	return &replica{
		Base:     run.Base{Number: number, Folder: folder, About: run.About{Origin: s.origin()}, Trajectory: trajectory.NewDCD(n, s.plan.frameEvery, md.Vec{})},
		Dynamics: md.NewDynamics(s.model, md.NewRandom(s.settings.Seed, s.index, number)),
		system:   s,
		rg:       md.NewSeries(samples),
		ree:      md.NewSeries(samples),
		kinetic:  md.NewSeries(samples),
		pairs:    md.NewPairSums(n),
		parts:    md.NewScalingParts(n, s.plan.pairs()),
	}
}

// Start, like the methods below, implements run.Replica.
func (r *replica) Start() error {
	if err := r.Dynamics.Start(); err != nil {
		return err
	}
	r.last = r.sample()
	return r.Create(r.Name)
}

func (r *replica) Resume() error {
	r.last = r.sample()
	return r.Dynamics.Resume()
}

func (r *replica) Burst() error {
	for left := int64(burstSteps); left > 0 && r.Step() < r.plan.steps; {
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

// record saves the sample and the frame that are due at the current step.
func (r *replica) record() error {
	if r.Step()%r.plan.sampleEvery == 0 {
		r.recordSample()
	}
	if r.Step()%r.plan.frameEvery == 0 {
		return r.Frame(r.Positions(), r.model.Centre(r.Positions()), []string{r.Residues})
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
	b := strconv.AppendInt(r.Rows, r.Step(), 10)
	field := func(v float64, decimals int) {
		b = strconv.AppendFloat(append(b, ','), v, 'f', decimals, 64)
	}
	field(float64(r.Step())*md.TimeStep, 2)
	b = strconv.AppendInt(append(b, ','), int64(r.Number), 10)
	field(r.last.rg, 4)
	field(r.last.ree, 4)
	field(r.PotentialEnergy(), 3)
	field(r.last.temperature, 2)
	r.Rows = append(b, '\n')
}

func (r *replica) Status() string {
	var b strings.Builder
	if r.Step() <= r.plan.discarded {
		b.WriteString("equilibrating ")
	}
	fmt.Fprintf(&b, "Rg %.2f nm ", r.last.rg)
	temperature := r.last.temperature
	if r.rg.Count() > 0 {
		rg := md.Pool([]md.Series{r.rg}).Widened()
		b.WriteString("<Rg> " + store.WithError(rg.Mean, rg.SE) + " nm ")
		temperature = r.kinetic.Mean()
	}
	fmt.Fprintf(&b, "T %.1f K", temperature)
	if r.Busy > 0 {
		fmt.Fprintf(&b, " %.0f ksteps/s", float64(r.Step())/r.Busy.Seconds()/1000)
	}
	return b.String()
}

// Archive omits data that can be computed from the positions.
func (r *replica) Archive(a *md.Archive) {
	r.Dynamics.Archive(a)
	r.rg.Archive(a)
	r.ree.Archive(a)
	r.kinetic.Archive(a)
	r.parts.Archive(a)
	left := r.pairs != nil
	a.Flag(&left)
	if left {
		r.pairs.Archive(a)
	} else {
		r.pairs = nil
	}
}
