package condensate

import (
	"fmt"

	"molrun/app/engine/input"
)

// A slab is at least as thin as this in nm for a volume of densestBeads, and its interfaces are about
// usualInterface wide, from 10 to 90 %.
const (
	densestBeads   = 3.2 // in a nm³
	usualInterface = 5.0 // nm
)

// expectedSlab has the interfaces of a slab that is as dense as they become.
func (s *Settings) expectedSlab() (lower, upper Interface) {
	half := float64(s.beads()) / densestBeads / (s.Box.X * s.Box.Y) / 2
	return Interface{-half, usualInterface}, Interface{half, usualInterface}
}

// warnings say what makes the results doubtful. The run continues.
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
		add("the box is narrow for chains of %d residues, which may meet their own images; edges of %.1f nm are safe", s.longest(), across)
	}
	if s.Protocol == Slab {
		lower, upper := s.expectedSlab()
		if why := withoutPlateau(lower, upper, s.Box.Z); why != "" {
			add("it may stay unknown whether the chains condense, since this is expected: %s", why)
		}
	}
	if s.Protocol == Slab && s.tooShort() {
		add("the run is short: chains go from one phase to the other within about %d steps, and errors need many such times",
			slabSteps(s.longest()))
	}
	return texts
}

// tooShort reports whether hardly any chain can go from one phase to the other in what is evaluated of a run.
func (s *Settings) tooShort() bool { return s.Steps-s.discarded() < slabSteps(s.longest()) }

// slabSteps is about how long a chain takes to cross an interface: many times the
// correlation time of its size in a dilute solution, which is 60 steps for each residue.
func slabSteps(residues int) int64 { return 10_000 * int64(residues) }

// leastDilute is the concentration in mM of a component below which the dilute phase of a
// run can only be bounded: that of three chains in all of what are taken for independent
// looks at it.
func (s *Settings) leastDilute() float64 {
	volume := s.Box.X * s.Box.Y * max(0, s.Box.Z-s.slabWidth())
	return 3 * MilliMol / (LeastLooks * float64(s.Replicas) * volume)
}
