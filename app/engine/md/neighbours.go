package md

import (
	"iter"
	"math/bits"
)

// skin is the extension of the neighbor lists beyond the cutoff, in nm. Any value gives
// the same trajectory, bit for bit; this one is about the fastest.
const skin = 0.4

// pairList holds, for each quad, its partners of the same or a higher index, in ascending
// order: the tiles of quad k are tiles[start[k]:start[k+1]]. Beads near one bead of a
// quad are mostly near the other three too, so little work is wasted. Pairs beyond the
// cutoff add nothing to a force, and all other pairs are added in order of their indexes,
// so forces depend only on the positions, not on when the list was built.
type pairList struct {
	start []int32
	tiles []tile
}

// tile is a partner quad with the pairs that count: bit 4i+j is the pair of the bead in
// lane i and the partner in lane j.
type tile struct{ quad, pairs uint16 }

// allPairs has the bits of all pairs of two quads.
const allPairs = 1<<(quadSize*quadSize) - 1

// rows returns the number of leading quads that have lists of partners.
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

// neighbours is a Verlet neighbor list for one kind of interaction: all pairs within
// reach when it was built. It contains every pair within the cutoff until some bead has
// moved by half the skin.
type neighbours struct {
	pairList
	reach float64 // nm, cutoff plus skin
	first []int32 // for each bead, its first non-bonded partner of higher index
	balls []ball  // bounding spheres of the quads
}

// ball is the bounding sphere of the beads of a quad.
type ball struct {
	centre Vec
	radius float64
}

func newNeighbours(cutoff float64, first []int32) *neighbours {
	return &neighbours{reach: cutoff + skin, first: first}
}

// build rebuilds the list for the positions in quads.
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

// enclose computes the bounding spheres.
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

// apart reports whether no beads of two quads can be within reach of each other.
func (n *neighbours) apart(k, l int) bool {
	a, b := &n.balls[k], &n.balls[l]
	far := n.reach + a.radius + b.radius
	return a.centre.Sub(b.centre).Norm2() > far*far
}

// near reports whether any two lanes are within reach, including unused lanes.
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

// validPairs returns the pairs of two quads, except bonded pairs, pairs counted in the
// other order, and unused lanes.
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
