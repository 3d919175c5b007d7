package md

import (
	"math"
	"math/rand/v2"
)

// Component is a number of equal chains.
type Component struct {
	Model  *Model
	Copies int
}

// Mixture is several chains in a periodic box with right angles. It never changes.
// Chains are numbered from 0, component after component, and beads chain after chain.
type Mixture struct {
	Components []Component
	Box        Vec // edges in nm

	model  []*Model // of each chain
	first  []int32  // bead of each chain, and the number of beads in the end
	shared *Model   // what all components have in common: conditions and tables
	screen *screenTable32
}

// LeastBox is the minimum edge of a box in nm: no bead interacts with two images of another
// one, with a margin.
const LeastBox = 2 * (chargeCutoff + 0.4)

// NewMixture returns the chains of components, whose conditions are the same. It panics
// if there is none, or if an edge of the box is below LeastBox.
func NewMixture(components []Component, box Vec) *Mixture {
	if min(box.X, box.Y, box.Z) < LeastBox {
		panic("a box that is too small")
	}
	shared := components[0].Model
	m := &Mixture{Components: components, Box: box, first: []int32{0}, shared: shared, screen: newScreenTable32(shared.screen)}
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

// Span returns the first bead of a chain and the one after its last.
func (m *Mixture) Span(chain int) (from, to int) { return int(m.first[chain]), int(m.first[chain+1]) }

// PartOf returns the part of a slice with an item for each bead that belongs to a chain.
func PartOf[T any](m *Mixture, all []T, chain int) []T {
	from, to := m.Span(chain)
	return all[from:to:to]
}

// Image returns the difference of two positions, moved by edges of the box so that it
// is as short as can be.
func (m *Mixture) Image(d Vec) Vec {
	return Vec{
		d.X - m.Box.X*math.Round(d.X/m.Box.X),
		d.Y - m.Box.Y*math.Round(d.Y/m.Box.Y),
		d.Z - m.Box.Z*math.Round(d.Z/m.Box.Z),
	}
}

// cell returns what to subtract from a position so that it lies in the box.
func (m *Mixture) cell(at Vec) Vec {
	return Vec{
		m.Box.X * math.Floor(at.X/m.Box.X),
		m.Box.Y * math.Floor(at.Y/m.Box.Y),
		m.Box.Z * math.Floor(at.Z/m.Box.Z),
	}
}

// randomOf returns the random numbers of one chain in one replica, none of which shares
// a state with another's or with those of cg-idp.
func randomOf(seed uint64, chain, replica int) Random {
	const stream = 0x6367636f6e640000 // "cgcond"
	return Random{seed, scramble(scramble(stream+uint64(replica)) + uint64(chain))}
}

// rng returns a generator that continues the random numbers of a chain.
func (g *Random) rng() *rand.Rand { return rand.New(g) }
