package condensate

import (
	"molrun/app/engine/md"
)

const (
	maxRows    = 20_000  // of timeseries.csv
	maxCentres = 100_000 // rows of centres.csv
)

// system is what all replicas share. It never changes.
type system struct {
	*Settings
	mix     *md.Mixture
	plan    plan
	kindOf  []int    // component of each chain
	letters []string // residues of each chain
}

func newSystem(s *Settings) *system {
	y := &system{Settings: s, mix: s.mixture(), plan: newPlan(s)}
	for k, c := range s.Components {
		for range c.Copies {
			y.kindOf = append(y.kindOf, k)
			y.letters = append(y.letters, c.Residues)
		}
	}
	return y
}

// plan says what happens at which step.
type plan struct {
	steps       int64
	restrained  int64 // steps in which a slab is drawn together
	discarded   int64 // steps of equilibration, these among them
	sampleEvery int64
	frameEvery  int64
	rowEvery    int64 // samples between rows of timeseries.csv
	centreEvery int64 // frames between those of centres.csv
}

func newPlan(s *Settings) plan {
	p := plan{steps: s.Steps, discarded: s.discarded(), sampleEvery: s.SampleEvery, frameEvery: s.FrameEvery}
	if s.Protocol == Slab {
		p.restrained = p.discarded / 2
	}
	rows := s.Steps / s.SampleEvery * int64(s.Replicas)
	p.rowEvery = max(1, (rows+maxRows-1)/maxRows)
	centres := s.Steps / s.FrameEvery * int64(s.Replicas) * int64(s.chains())
	p.centreEvery = max(1, (centres+maxCentres-1)/maxCentres)
	return p
}

// samples is the number of samples after equilibration.
func (p plan) samples() int64 { return p.steps/p.sampleEvery - p.discarded/p.sampleEvery }

// untilEvent is the number of steps from a step to the next sample, to the end of the
// restraint or to that of the run.
func (p plan) untilEvent(step int64) int64 {
	n := min(p.sampleEvery-step%p.sampleEvery, p.steps-step)
	if step < p.restrained {
		n = min(n, p.restrained-step)
	}
	return n
}

// restraint is the stiffness in kJ/mol/nm² of the springs that draw the chains together: a
// chain at the surface of the slab to come is held by a few kT.
func (y *system) restraint() float64 {
	half := max(1.5, y.slabWidth()/2)
	beads := float64(y.beads()) / float64(y.chains())
	return 4 * y.mix.Components[0].Model.KT() / (beads * half * half)
}
