package md

import (
	"errors"
	"math/rand/v2"
)

const (
	packCell     = 0.75 // nm, larger than any bead diameter
	packRetreats = 400  // per chain before it restarts elsewhere
	packPlaces   = 200  // starting points tried per chain
)

// packing holds the beads placed in a box, by cell.
type packing struct {
	mix    *Mixture
	types  []uint8
	x      []Vec // unwrapped
	count  [3]int
	edge   Vec
	inCell map[int][]int32
}

// Pack returns self-avoiding walks of all chains, whose beads lie between z = low and
// high in nm and do not overlap with those of any other chain, including periodic images.
// It then moves each bead slightly to give thermal bond lengths. It returns an error if
// the chains do not fit.
func Pack(m *Mixture, seed uint64, replica int, low, high float64) ([]Vec, error) {
	p := &packing{mix: m, inCell: make(map[int][]int32)}
	p.count = [3]int{int(m.Box.X / packCell), int(m.Box.Y / packCell), int(m.Box.Z / packCell)}
	p.edge = Vec{m.Box.X / float64(p.count[0]), m.Box.Y / float64(p.count[1]), m.Box.Z / float64(p.count[2])}
	source := randomOf(seed, m.Chains(), replica) // a stream that no chain uses
	rng := source.rng()
	for _, model := range m.model {
		if !p.addChain(model, rng, low, high) {
			return nil, errors.New("the chains do not fit: use a larger box or fewer copies")
		}
	}
	m.model[0].shake(p.x, rng)
	return p.x, nil
}

func (p *packing) addChain(m *Model, rng *rand.Rand, low, high float64) bool {
	for range packPlaces {
		start := Vec{p.mix.Box.X * rng.Float64(), p.mix.Box.Y * rng.Float64(), low + (high-low)*rng.Float64()}
		if p.fits(m, 0, start, len(p.x)) && p.walk(m, rng, start, low, high) {
			return true
		}
	}
	return false
}

// walk adds a whole chain that starts at start, or adds nothing and returns false.
func (p *packing) walk(m *Model, rng *rand.Rand, start Vec, low, high float64) bool {
	first := len(p.x)
	p.push(m.types[0], start)
	failed, retreats := 0, 0
	for len(p.x)-first < m.Size() {
		bead := len(p.x) - first
		next := p.x[len(p.x)-1].AddScaled(bondLength, direction(rng))
		if next.Z >= low && next.Z <= high && p.fits(m, bead, next, len(p.x)-1) {
			p.push(m.types[bead], next)
			failed = 0
			continue
		}
		if failed++; failed < walkAttempts {
			continue
		}
		failed = 0
		if retreats++; retreats > packRetreats {
			p.drop(first)
			return false
		}
		p.drop(max(first+1, len(p.x)-walkRetreat))
	}
	return true
}

func (p *packing) push(kind uint8, at Vec) {
	c := p.cell(at)
	p.inCell[c] = append(p.inCell[c], int32(len(p.x)))
	p.x = append(p.x, at)
	p.types = append(p.types, kind)
}

// drop removes the beads from index from on, which are the last in their cells.
func (p *packing) drop(from int) {
	for k := len(p.x) - 1; k >= from; k-- {
		c := p.cell(p.x[k])
		p.inCell[c] = p.inCell[c][:len(p.inCell[c])-1]
	}
	p.x, p.types = p.x[:from], p.types[:from]
}

func (p *packing) axes(at Vec) [3]int {
	at = at.Sub(p.mix.cell(at))
	return [3]int{
		min(p.count[0]-1, int(at.X/p.edge.X)),
		min(p.count[1]-1, int(at.Y/p.edge.Y)),
		min(p.count[2]-1, int(at.Z/p.edge.Z)),
	}
}

func (p *packing) cell(at Vec) int {
	c := p.axes(at)
	return (c[2]*p.count[1]+c[1])*p.count[0] + c[0]
}

// fits reports whether a bead of a chain can be placed at a position without overlapping
// any placed bead other than but, to which it will be bonded.
func (p *packing) fits(m *Model, bead int, at Vec, but int) bool {
	sigma := residues[m.types[bead]].sigma
	c := p.axes(at)
	for k := range 27 {
		x, _ := wrapped(c[0]+k%3-1, p.count[0])
		y, _ := wrapped(c[1]+k/3%3-1, p.count[1])
		z, _ := wrapped(c[2]+k/9-1, p.count[2])
		for _, j := range p.inCell[(z*p.count[1]+y)*p.count[0]+x] {
			apart := (sigma + residues[p.types[j]].sigma) / 2
			if int(j) != but && p.mix.MinimumImage(at.Sub(p.x[j])).Norm2() < apart*apart {
				return false
			}
		}
	}
	return true
}
