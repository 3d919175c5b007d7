package condensate

import (
	"molrun/app/engine/md"
)

const (
	maxRows    = 20_000  // of timeseries.csv
	maxCentres = 100_000 // rows of centres.csv
)

// system is the immutable data shared by all replicas.
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

// plan determines at which steps samples and frames are taken.
type plan struct {
	steps       int64
	restrained  int64 // steps with a restraint that holds the slab together
	discarded   int64 // equilibration steps, including the restrained ones
	sampleEvery int64
	frameEvery  int64
	rowEvery    int64 // samples between rows of timeseries.csv
	centreEvery int64 // frames between frames of centres.csv
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

// samples returns the number of samples after equilibration.
func (p plan) samples() int64 { return p.steps/p.sampleEvery - p.discarded/p.sampleEvery }

// untilEvent returns the number of steps to the next sample, the end of the restraint or
// the end of the run.
func (p plan) untilEvent(step int64) int64 {
	n := min(p.sampleEvery-step%p.sampleEvery, p.steps-step)
	if step < p.restrained {
		n = min(n, p.restrained-step)
	}
	return n
}

// restraint returns the spring constant in kJ/mol/nm² of the restraint that holds the
// chains together. At the surface of the expected slab, it gives a chain an energy of a
// few kT.
func (y *system) restraint() float64 {
	half := max(1.5, y.slabWidth()/2)
	beads := float64(y.beads()) / float64(y.chains())
	return 4 * y.mix.Components[0].Model.KT() / (beads * half * half)
}
