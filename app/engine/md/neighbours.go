package md

import (
	"iter"
	"math/bits"
)

// skin is how far the lists reach beyond the cutoff, in nm. Any value gives the
// same trajectory, bit for bit; this one is about the fastest.
const skin = 0.4

// pairList holds, for each quad, its partners of the same or a higher number, in
// ascending order: the tiles of quad k are tiles[start[k]:start[k+1]]. Beads near
// one bead of a quad are mostly near the other three too, so little work is
// wasted. Pairs beyond the cutoff add nothing to a force, and the others are added
// in the order of their numbers. Forces therefore depend on positions alone, not
// on when the list was built.
type pairList struct {
	start []int32
	tiles []tile
}

// tile is a quad of partners and the pairs with them that count: bit 4i+j stands
// for the bead in lane i and the partner in lane j.
type tile struct{ quad, pairs uint16 }

// allPairs are those of two quads.
const allPairs = 1<<(quadSize*quadSize) - 1

// rows returns the number of quads that have partners of their own: the first ones.
func (l *pairList) rows() int { return len(l.start) - 1 }

// all yields the listed pairs of beads, within the cutoff or not.
func (l *pairList) all() iter.Seq2[int, int] {
	return func(yield func(i, j int) bool) {
		for k := range l.rows() {
			for _, t := range l.tiles[l.start[k]:l.start[k+1]] {
				for pairs := t.pairs; pairs != 0; pairs &= pairs - 1 {
					pair := bits.TrailingZeros16(pairs)
					if !yield(k*quadSize+pair/quadSize, int(t.quad)*quadSize+pair%quadSize) {
						return
					}
				}
			}
		}
	}
}

// neighbours is a Verlet list for one kind of pairs: all pairs within reach when
// it was built. It holds every pair within the cutoff until some bead has moved
// by half the skin.
type neighbours struct {
	pairList
	reach float64 // nm, cutoff and skin
	first []int32 // for each bead, its first partner of a higher number that is not bonded to it
	balls []ball  // around the quads
}

// ball is a sphere around the beads of a quad.
type ball struct {
	centre Vec
	radius float64
}

func newNeighbours(cutoff float64, first []int32) *neighbours {
	return &neighbours{reach: cutoff + skin, first: first}
}

// build replaces the list with one for the positions in quads.
func (n *neighbours) build(quads []quad) {
	n.start = append(n.start[:0], 0)
	n.tiles = n.tiles[:0]
	n.enclose(quads)
	for k := range quads {
		for l := k; l < len(quads); l++ {
			if !n.apart(k, l) && n.near(&quads[k], &quads[l]) {
				n.addTile(k, l)
			}
		}
		n.start = append(n.start, int32(len(n.tiles)))
	}
}

// beads returns the number of beads in a quad.
func (n *neighbours) beads(quad int) int { return min(quadSize, len(n.first)-quad*quadSize) }

// enclose computes the balls.
func (n *neighbours) enclose(quads []quad) {
	n.balls = n.balls[:0]
	for k := range quads {
		q, beads := &quads[k], n.beads(k)
		var b ball
		for lane := range beads {
			b.centre = b.centre.AddScaled(1/float64(beads), q.position(lane))
		}
		for lane := range beads {
			b.radius = max(b.radius, q.position(lane).Sub(b.centre).Norm())
		}
		n.balls = append(n.balls, b)
	}
}

// apart reports whether no bead of one quad can be within reach of the other.
func (n *neighbours) apart(k, l int) bool {
	a, b := &n.balls[k], &n.balls[l]
	far := n.reach + a.radius + b.radius
	return a.centre.Sub(b.centre).Norm2() > far*far
}

// near reports whether two lanes are within reach. Unused lanes count too.
func (n *neighbours) near(a, b *quad) bool {
	for i := range quadSize {
		xi := a.position(i)
		for j := range quadSize {
			if xi.Sub(b.position(j)).Norm2() < n.reach*n.reach {
				return true
			}
		}
	}
	return false
}

func (n *neighbours) addTile(k, l int) {
	t := tile{quad: uint16(l), pairs: allPairs}
	if l <= k+1 || l == len(n.balls)-1 {
		t.pairs = n.validPairs(k, l)
	}
	if t.pairs != 0 {
		n.tiles = append(n.tiles, t)
	}
}

// validPairs returns the pairs of two quads without bonded ones, those counted
// the other way round, and unused lanes.
func (n *neighbours) validPairs(k, l int) uint16 {
	var pairs uint16
	for i := range n.beads(k) {
		for j := range n.beads(l) {
			if l*quadSize+j >= int(n.first[k*quadSize+i]) {
				pairs |= 1 << (i*quadSize + j)
			}
		}
	}
	return pairs
}
