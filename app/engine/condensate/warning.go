package condensate

import (
	"fmt"

	"molrun/app/engine/input"
)

// The bead density of the densest slabs, and a typical interface width from 10 to 90 %.
const (
	densestBeads   = 3.2 // per nm³
	usualInterface = 5.0 // nm
)

// expectedSlab returns the interfaces of a slab of the highest density.
func (s *Settings) expectedSlab() (lower, upper Interface) {
	half := float64(s.beads()) / densestBeads / (s.Box.X * s.Box.Y) / 2
	return Interface{-half, usualInterface}, Interface{half, usualInterface}
}

// warnings returns the reasons why the results might be unreliable. They do not prevent
// the run.
func (s *Settings) warnings() []string {
	texts := input.ConditionWarnings(s.Conditions)
	add := func(format string, args ...any) { texts = append(texts, fmt.Sprintf(format, args...)) }
	for _, c := range s.Components {
		for _, w := range input.Warnings(c.Residues) {
			if len(s.Components) > 1 {
				w = c.Name + ": " + w
			}
			texts = append(texts, w)
		}
	}
	if across := s.crossSection(); min(s.Box.X, s.Box.Y, s.Box.Z) < across {
		add("the box is narrow for chains of %d residues, which might interact with their own images; edges of %.1f nm are safe", s.longest(), across)
	}
	if s.Protocol == Slab {
		lower, upper := s.expectedSlab()
		if why := withoutPlateau(lower, upper, s.Box.Z); why != "" {
			add("the run might not show whether the chains condense; expected: %s", why)
		}
	}
	if s.Protocol == Slab && s.tooShort() {
		add("the run is short: chains exchange between the phases within about %d steps, and error estimates need many such times",
			slabSteps(s.longest()))
	}
	return texts
}

// tooShort reports whether the production run is too short for chains to exchange between
// the phases.
func (s *Settings) tooShort() bool { return s.Steps-s.discarded() < slabSteps(s.longest()) }

// slabSteps is the approximate time for a chain to cross an interface, many times the
// autocorrelation time of its size in dilute solution, which is 60 steps per residue.
func slabSteps(residues int) int64 { return 10_000 * int64(residues) }

// minDiluteConcentration returns the concentration in mM of a component below which the dilute phase
// can only be bounded: three chains in all observations assumed to be independent.
func (s *Settings) minDiluteConcentration() float64 {
	volume := s.Box.X * s.Box.Y * max(0, s.Box.Z-s.slabWidth())
	return 3 * MilliMol / (AssumedSamples * float64(s.Replicas) * volume)
}
