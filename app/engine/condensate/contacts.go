package condensate

import (
	"math"

	"molrun/app/engine/md"
)

const (
	contactDistance = 1.0   // nm
	maxMapped       = 2_000 // residues of all components together, for maps of contacts
)

// contacts gathers which residues of different chains are near each other.
type contacts struct {
	*system
	frames int64
	counts [][]uint64 // of components a <= b, row after row of a; nil without maps
	cells  grid
}

// clusters is which chains hang together in one frame.
type clusters struct {
	bound   float64 // fraction of chains with a contact to another one
	largest float64 // fraction of chains in the largest cluster
}

func newContacts(y *system) *contacts {
	c := &contacts{system: y, cells: newGrid(y.Box)}
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

// index is the place of components a <= b among the counts.
func (c *contacts) index(a, b int) int { return a*len(c.Components) - a*(a-1)/2 + b - a }

// look finds the chains that hang together; with keep, it adds the contacts to the sums.
func (c *contacts) look(x []md.Vec, keep bool) clusters {
	c.cells.fill(x)
	chainOf := make([]int32, len(x))
	groups := newForest(c.mix.Chains())
	for k := range c.mix.Chains() {
		from, to := c.mix.Span(k)
		for i := from; i < to; i++ {
			chainOf[i] = int32(k)
		}
	}
	bound := make([]bool, c.mix.Chains())
	c.cells.pairs(func(i, j int32) {
		p, q := chainOf[i], chainOf[j]
		if p == q || c.mix.Image(x[i].Sub(x[j])).Norm2() >= contactDistance*contactDistance {
			return
		}
		bound[p], bound[q] = true, true
		groups.join(p, q)
		if keep && c.counts != nil {
			c.add(p, q, i, j)
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

// add counts a contact of beads i and j of chains p and q.
func (c *contacts) add(p, q, i, j int32) {
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

// mean is how many residues j of other chains of component b a residue i of a chain of a
// touches on average, for a <= b.
func (c *contacts) mean(a, b, i, j int) float64 {
	if c.frames == 0 {
		return 0
	}
	n := c.counts[c.index(a, b)][i*len(c.Components[b].Residues)+j]
	return float64(n) / float64(c.frames) / float64(c.Components[a].Copies)
}

// archive stores or restores the sums.
func (c *contacts) archive(a md.Archive) {
	a.Integer(&c.frames)
	for _, counts := range c.counts {
		for k := range counts {
			a.Word(&counts[k])
		}
	}
}

// forest is sets of chains.
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

// grid sorts beads by place, in cells no smaller than a contact.
type grid struct {
	box   md.Vec
	count [3]int
	head  []int32 // first bead of each cell, -1 for none
	next  []int32 // bead after each in its cell
}

func newGrid(box md.Vec) grid {
	const mostCells = 128 // along an edge
	n := func(edge float64) int { return min(mostCells, int(edge/contactDistance)) }
	g := grid{box: box, count: [3]int{n(box.X), n(box.Y), n(box.Z)}}
	g.head = make([]int32, g.count[0]*g.count[1]*g.count[2])
	return g
}

func (g *grid) fill(x []md.Vec) {
	if len(g.next) != len(x) {
		g.next = make([]int32, len(x))
	}
	for k := range g.head {
		g.head[k] = -1
	}
	along := func(v, edge float64, count int) int {
		return min(count-1, int((v/edge-math.Floor(v/edge))*float64(count)))
	}
	for i := len(x) - 1; i >= 0; i-- {
		cx, cy, cz := along(x[i].X, g.box.X, g.count[0]), along(x[i].Y, g.box.Y, g.count[1]), along(x[i].Z, g.box.Z, g.count[2])
		cell := (cz*g.count[1]+cy)*g.count[0] + cx
		g.next[i], g.head[cell] = g.head[cell], int32(i)
	}
}

// pairs calls found once for each pair of beads of the same cell or of neighbours.
func (g *grid) pairs(found func(i, j int32)) {
	for cell := range g.head {
		if g.head[cell] < 0 {
			continue
		}
		at := [3]int{cell % g.count[0], cell / g.count[0] % g.count[1], cell / g.count[0] / g.count[1]}
		for i := g.head[cell]; i >= 0; i = g.next[i] {
			for j := g.next[i]; j >= 0; j = g.next[j] {
				found(i, j)
			}
			for side := 14; side < 27; side++ { // half of the neighbours; the others look back
				for j := g.head[g.neighbour(at, side)]; j >= 0; j = g.next[j] {
					found(i, j)
				}
			}
		}
	}
}

// neighbour is the cell at one of 27 places around a cell, of which 13 is the cell itself.
func (g *grid) neighbour(at [3]int, side int) int {
	var to [3]int
	for axis, step := range [3]int{side%3 - 1, side/3%3 - 1, side/9 - 1} {
		to[axis] = (at[axis] + step + g.count[axis]) % g.count[axis]
	}
	return (to[2]*g.count[1]+to[1])*g.count[0] + to[0]
}
