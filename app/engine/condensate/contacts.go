package condensate

import (
	"math"

	"molrun/app/engine/md"
)

const (
	contactDistance = 1.0   // nm
	maxMapped       = 2_000 // maximum total number of residues of all components for contact maps
)

// contacts counts contacts between residues of different chains.
type contacts struct {
	*system
	frames int64
	counts [][]uint64 // one matrix per pair of components a <= b, with one row per residue of a; nil if there are no maps
	cells  grid
}

// clusters describes the connectivity of chains in one frame.
type clusters struct {
	bound   float64 // fraction of chains in contact with another chain
	largest float64 // fraction of chains in the largest cluster
}

func newContacts(y *system) *contacts {
	c := &contacts{system: y, cells: newGrid(y)}
	residues := 0
	for _, component := range y.Components {
		residues += len(component.Residues)
	}
	if residues > maxMapped {
		return c
	}
	for a := range y.Components {
		for b := a; b < len(y.Components); b++ {
			c.counts = append(c.counts, make([]uint64, len(y.Components[a].Residues)*len(y.Components[b].Residues)))
		}
	}
	return c
}

// index returns the index of the pair of components a <= b in counts.
func (c *contacts) index(a, b int) int { return a*len(c.Components) - a*(a-1)/2 + b - a }

// findClusters finds clusters of chains in contact. If keep is true, it also adds the
// contacts to the sums.
func (c *contacts) findClusters(x []md.Vec, keep bool) clusters {
	c.cells.sortBeads(x)
	chainOf := make([]int32, len(x))
	groups := newForest(c.mix.Chains())
	for k := range c.mix.Chains() {
		from, to := c.mix.Span(k)
		for i := from; i < to; i++ {
			chainOf[i] = int32(k)
		}
	}
	bound := make([]bool, c.mix.Chains())
	c.cells.touching(func(i, j int32) {
		p, q := chainOf[i], chainOf[j]
		if p == q {
			return
		}
		bound[p], bound[q] = true, true
		groups.join(p, q)
		if keep && c.counts != nil {
			c.addContact(p, q, i, j)
		}
	})
	if keep {
		c.frames++
	}
	n := 0
	for _, b := range bound {
		if b {
			n++
		}
	}
	chains := float64(c.mix.Chains())
	return clusters{float64(n) / chains, float64(groups.largest()) / chains}
}

// addContact counts a contact of beads i and j of chains p and q.
func (c *contacts) addContact(p, q, i, j int32) {
	a, b := c.kindOf[p], c.kindOf[q]
	if a > b {
		a, b, p, q, i, j = b, a, q, p, j, i
	}
	first, _ := c.mix.Span(int(p))
	second, _ := c.mix.Span(int(q))
	k, l := int(i)-first, int(j)-second
	counts, width := c.counts[c.index(a, b)], len(c.Components[b].Residues)
	counts[k*width+l]++
	if a == b {
		counts[l*width+k]++
	}
}

// mean returns the average number of residues j, in other chains of component b, in
// contact with residue i of a chain of a, for a <= b.
func (c *contacts) mean(a, b, i, j int) float64 {
	if c.frames == 0 {
		return 0
	}
	n := c.counts[c.index(a, b)][i*len(c.Components[b].Residues)+j]
	return float64(n) / float64(c.frames) / float64(c.Components[a].Copies)
}

// archive saves or restores the sums.
func (c *contacts) archive(a *md.Archive) {
	a.Integer(&c.frames)
	for _, counts := range c.counts {
		for k := range counts {
			a.Word(&counts[k])
		}
	}
}

// forest is a union-find structure of chains.
type forest struct{ parent []int32 }

func newForest(n int) *forest {
	f := &forest{make([]int32, n)}
	for k := range f.parent {
		f.parent[k] = int32(k)
	}
	return f
}

func (f *forest) root(k int32) int32 {
	for f.parent[k] != k {
		f.parent[k] = f.parent[f.parent[k]]
		k = f.parent[k]
	}
	return k
}

func (f *forest) join(a, b int32) {
	a, b = f.root(a), f.root(b)
	f.parent[max(a, b)] = min(a, b)
}

func (f *forest) largest() int {
	size := make([]int, len(f.parent))
	most := 0
	for k := range f.parent {
		r := f.root(int32(k))
		size[r]++
		most = max(most, size[r])
	}
	return most
}

// grid is a cell list with cells no smaller than the contact distance.
type grid struct {
	*system
	count [3]int
	start []int32  // index in order of the first bead of each cell, then the number of beads
	order []int32  // beads sorted by cell
	at    []md.Vec // positions in that order, see inBox
}

func newGrid(y *system) grid {
	const mostCells = 1 << 20
	edge := max(contactDistance, math.Cbrt(y.Box.X*y.Box.Y*y.Box.Z/mostCells))
	g := grid{system: y, count: [3]int{int(y.Box.X / edge), int(y.Box.Y / edge), int(y.Box.Z / edge)}}
	g.start = make([]int32, g.count[0]*g.count[1]*g.count[2]+1)
	n := y.mix.Size()
	g.order, g.at = make([]int32, n), make([]md.Vec, n)
	return g
}

// sortBeads assigns beads to cells.
func (g *grid) sortBeads(x []md.Vec) {
	clear(g.start)
	in, cell := make([]md.Vec, len(x)), make([]int32, len(x))
	along := func(v, edge float64, count int) int { return min(count-1, int((v/edge+0.5)*float64(count))) }
	for i := range x {
		in[i] = g.inBox(x[i])
		cx, cy, cz := along(in[i].X, g.Box.X, g.count[0]), along(in[i].Y, g.Box.Y, g.count[1]), along(in[i].Z, g.Box.Z, g.count[2])
		cell[i] = int32((cz*g.count[1]+cy)*g.count[0] + cx)
		g.start[cell[i]]++
	}
	end := int32(0)
	for c := range g.start {
		end += g.start[c]
		g.start[c] = end
	}
	for i := len(x) - 1; i >= 0; i-- {
		g.start[cell[i]]--
		rank := g.start[cell[i]]
		g.order[rank], g.at[rank] = int32(i), in[i]
	}
}

// touching calls found once for each pair of beads closer than contactDistance.
func (g *grid) touching(found func(i, j int32)) {
	for cell := range len(g.start) - 1 {
		from, to := g.start[cell], g.start[cell+1]
		if from == to {
			continue
		}
		at := [3]int{cell % g.count[0], cell / g.count[0] % g.count[1], cell / g.count[0] / g.count[1]}
		for side := 13; side < 27; side++ { // the cell itself and half of its neighbors; each pair of cells is visited once
			other, shift := g.neighbour(at, side)
			first, end := g.start[other], g.start[other+1]
			for i := from; i < to; i++ {
				if side == 13 {
					first = i + 1
				}
				a := g.at[i].Sub(shift)
				for j := first; j < end; j++ {
					if g.at[j].Sub(a).Norm2() < contactDistance*contactDistance {
						found(g.order[i], g.order[j])
					}
				}
			}
		}
	}
}

// neighbour returns the cell at one of 27 offsets, where 13 means the cell itself, and
// the shift of its periodic image that is adjacent to the cell.
func (g *grid) neighbour(at [3]int, side int) (cell int, shift md.Vec) {
	edges := [3]float64{g.Box.X, g.Box.Y, g.Box.Z}
	var to [3]int
	var moved [3]float64
	for axis, step := range [3]int{side%3 - 1, side/3%3 - 1, side/9 - 1} {
		to[axis] = at[axis] + step
		switch to[axis] {
		case -1:
			to[axis], moved[axis] = g.count[axis]-1, -edges[axis]
		case g.count[axis]:
			to[axis], moved[axis] = 0, edges[axis]
		}
	}
	return (to[2]*g.count[1]+to[1])*g.count[0] + to[0], md.Vec{X: moved[0], Y: moved[1], Z: moved[2]}
}
