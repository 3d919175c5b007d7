package md

import (
	"math"
	"math/rand/v2"
)

// Component is a number of identical chains.
type Component struct {
	Model  *Model
	Copies int
}

// Mixture is several chains in an orthorhombic periodic box. It is immutable. Chains are
// numbered from 0 by component, and beads by chain.
type Mixture struct {
	Components []Component
	Box        Vec // edges in nm

	model        []*Model // per chain
	first        []int32  // first bead of each chain, then the number of beads
	shared       *Model   // common to all components: conditions and tables
	debyeHueckel *debyeHueckelTable32
}

// MinBoxEdge is the minimum edge of a box in nm: with a margin, no bead interacts with two
// images of another.
const MinBoxEdge = 2 * (chargeCutoff + 0.4)

// NewMixture returns the chains of components, which must have the same conditions. It
// panics if there are no components, or if an edge of the box is below MinBoxEdge.
func NewMixture(components []Component, box Vec) *Mixture {
	if min(box.X, box.Y, box.Z) < MinBoxEdge {
		panic("a box that is too small")
	}
	shared := components[0].Model
	m := &Mixture{Components: components, Box: box, first: []int32{0}, shared: shared, debyeHueckel: newDebyeHueckelTable32(shared.debyeHueckel)}
	for _, c := range components {
		for range c.Copies {
			m.model = append(m.model, c.Model)
			m.first = append(m.first, m.first[len(m.first)-1]+int32(c.Model.Size()))
		}
	}
	return m
}

// Chains returns the number of chains.
func (m *Mixture) Chains() int { return len(m.model) }

// Size returns the number of beads.
func (m *Mixture) Size() int { return int(m.first[len(m.model)]) }

// Chain returns the model of a chain.
func (m *Mixture) Chain(chain int) *Model { return m.model[chain] }

// Span returns the range of the beads of a chain, from inclusive to exclusive.
func (m *Mixture) Span(chain int) (from, to int) { return int(m.first[chain]), int(m.first[chain+1]) }

// PartOf returns the items of a chain from a slice with one item per bead.
func PartOf[T any](m *Mixture, all []T, chain int) []T {
	from, to := m.Span(chain)
	return all[from:to:to]
}

// MinimumImage returns the minimum image of the difference of two positions.
func (m *Mixture) MinimumImage(d Vec) Vec {
	return Vec{
		d.X - m.Box.X*math.Round(d.X/m.Box.X),
		d.Y - m.Box.Y*math.Round(d.Y/m.Box.Y),
		d.Z - m.Box.Z*math.Round(d.Z/m.Box.Z),
	}
}

// cell returns the vector to subtract from a position to wrap it into the box.
func (m *Mixture) cell(at Vec) Vec {
	return Vec{
		m.Box.X * math.Floor(at.X/m.Box.X),
		m.Box.Y * math.Floor(at.Y/m.Box.Y),
		m.Box.Z * math.Floor(at.Z/m.Box.Z),
	}
}

// randomOf returns the random numbers of one chain in one replica. No two of these
// generators share a state with each other or with a generator of cg-idp.
func randomOf(seed uint64, chain, replica int) Random {
	const stream = 0x6367636f6e640000 // "cgcond"
	return Random{seed, scramble(scramble(stream+uint64(replica)) + uint64(chain))}
}

// rng returns a generator that continues the random numbers of a chain.
func (g *Random) rng() *rand.Rand { return rand.New(g) }
