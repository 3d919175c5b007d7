package condensate

import (
	"encoding/json"
	"math"

	"molrun/app/engine/input"
	"molrun/app/engine/md"
)

// Parameters from which boxes are derived.
const (
	denseBeads = 2.5 // beads per nm³ in a typical dense phase
	packBeads  = 1.6 // beads per nm³ of the initial slab, where chains are placed at random
	maxPacking = 0.5 // maximum sum of cubed bead diameters, as a fraction of the volume
	slabWidths = 8   // length of the box in multiples of the typical slab thickness
	maxDilute  = 20  // chains
	bulkPreset = 200 // mg/mL
	dilPreset  = 2   // mg/mL
)

// crossSection returns the edge length in nm, perpendicular to z, at which a chain hardly
// ever reaches its own image: three and a half times the radius of gyration of an ideal
// chain.
func (s *Settings) crossSection() float64 {
	return math.Ceil(2*max(md.MinBoxEdge, 1.06*math.Sqrt(float64(s.longest())))) / 2
}

// slabWidth returns the approximate thickness of a slab of all chains, in nm.
func (s *Settings) slabWidth() float64 {
	return float64(s.beads()) / denseBeads / (s.Box.X * s.Box.Y)
}

// packHeight returns the thickness of the initial slab, or the box length without one, in
// nm.
func (s *Settings) packHeight() float64 {
	if s.Protocol != Slab {
		return s.Box.Z
	}
	return float64(s.beads()) / packBeads / (s.Box.X * s.Box.Y)
}

// minVolume returns the minimum volume in nm³ into which the chains can be packed.
func (s *Settings) minVolume() float64 {
	cubes := 0.0
	for _, c := range s.Components {
		cubes += float64(c.Copies) * md.CubedDiameters(c.Residues)
	}
	return cubes / maxPacking
}

// box reads or derives the box and checks that the chains fit into it.
func (r *reader) box(s *Settings) {
	concentration := r.concentration(s)
	if r.Has(limitEdge.Key) {
		r.edges(s)
	}
	if len(s.Components) == 0 || len(r.Faults) > 0 {
		return
	}
	if !r.Has(limitEdge.Key) {
		s.deriveBox(concentration)
	}
	at := input.Loc(limitEdge.Key)
	if r.Has(limitConcentration.Key) {
		at = input.Loc(limitConcentration.Key)
	}
	volume := s.Box.X * s.Box.Y * s.Box.Z
	switch short := min(s.Box.X, s.Box.Y, s.Box.Z); {
	case short < md.MinBoxEdge:
		r.Fault(at, input.Conflict, "at %s mg/mL the box would be only %.1f nm wide, and a bead would interact with two images of another; use more copies or a lower concentration", input.Plain(concentration), short)
	case s.Protocol == Slab && s.Box.Z < 2*max(s.Box.X, s.Box.Y):
		r.Fault(at, input.Conflict, "the box of a slab must be long along z: its third edge is %s nm; choose at least %s nm", input.Plain(s.Box.Z), input.Plain(2*max(s.Box.X, s.Box.Y)))
	case s.Protocol == Slab && s.Box.Z < 2*s.packHeight():
		r.Fault(at, input.Conflict, "the slab would fill the box and leave no space for a dilute phase: the third edge is %s nm; use at least %.0f nm, or fewer copies",
			input.Plain(s.Box.Z), math.Ceil(2*s.packHeight()))
	case s.minVolume() > volume:
		r.Fault(at, input.Conflict, "the box is too small: %d residues in %.0f nm³; use at least %.0f nm³, or fewer copies",
			s.beads(), volume, math.Ceil(s.minVolume()))
	}
}

// concentration reads the chain concentration in mg/mL, from which the box is derived.
func (r *reader) concentration(s *Settings) float64 {
	switch {
	case r.Has(limitConcentration.Key) && s.Protocol == Slab:
		r.Fault(input.Loc(limitConcentration.Key), input.Conflict, "the concentrations in a slab are a result of the run; omit concentration_mg_mL, or use the protocol bulk or dilute")
	case r.Has(limitConcentration.Key) && r.Has(limitEdge.Key):
		r.Fault(input.Loc(limitConcentration.Key), input.Conflict, "give either box_nm or concentration_mg_mL, not both: each determines the other")
	}
	preset := float64(bulkPreset)
	if s.Protocol == Dilute {
		preset = dilPreset
	}
	return r.Number(withPreset(limitConcentration, preset))
}

func (r *reader) edges(s *Settings) {
	key := limitEdge.Key
	var edges []float64
	if json.Unmarshal(r.Raw(key), &edges) != nil || len(edges) != 3 {
		r.Fault(input.Loc(key), input.Type, "box_nm must be a list of three lengths in nm, such as [15, 15, 150], not %s", input.KindOf(r.Raw(key)))
		return
	}
	for k, edge := range edges {
		if !(edge >= limitEdge.Low && edge <= limitEdge.High) {
			r.Fault(input.Loc(key, k), input.Range, "item %d of box_nm is %s; it must be between %s and %s nm: in a smaller box a bead would interact with two images of another",
				k+1, input.Plain(edge), input.Plain(limitEdge.Low), input.Plain(limitEdge.High))
		}
	}
	s.Box = md.Vec{X: edges[0], Y: edges[1], Z: edges[2]}
}

// deriveBox derives the box from the concentration in mg/mL, which is ignored for a slab.
func (s *Settings) deriveBox(concentration float64) {
	if s.Protocol == Slab {
		across := s.crossSection()
		s.Box = md.Vec{X: across, Y: across}
		s.Box.Z = math.Ceil(max(slabWidths*s.slabWidth(), 2*s.packHeight(), 4*across))
		return
	}
	edge := math.Cbrt(s.mass() / concentration * milligramsPerMillilitre)
	edge = math.Round(edge*1000) / 1000
	s.Box = md.Vec{X: edge, Y: edge, Z: edge}
}

// milligramsPerMillilitre is the concentration in mg/mL of 1 g/mol in 1 nm³.
const milligramsPerMillilitre = 1e24 / 6.02214076e23
