package md

import (
	"cmp"
	"math"
	"slices"
)

// Domains divide the beads of a mixture, or its charged ones, among tasks that compute
// forces at the same time. The inner loops take quads of consecutive beads of one chain;
// a domain owns quads that are near each other along the longest edge of the box, and has
// copies, its halo, of those that they interact with and that another domain owns or that
// lie across the boundary. A pair of quads belongs to one domain alone. The force on a
// bead is the sum over the copies of its quad, in the order of the domains, so that it
// depends on the positions and on when the lists were built, but not on who computed what.
const (
	quadsOfDomain = 320 // about as many are owned by one
	mostDomains   = 64
)

// domains are all of one kind of pairs.
type domains struct {
	box     Vec
	reach   float64    // nm, cutoff and skin
	axis    int        // the longest edge
	groups  []group    // quads, chain after chain
	ofChain []int32    // first group of each chain, and the number of groups in the end
	spots   []spot     // where each group was when the lists were built
	order   []int32    // groups, along the longest edge
	rank    []int32    // of each group in the order
	cells   cells      // of the groups
	domain  []domain   // tasks
	copies  []copyOf   // of each group, group after group
	start   []int32    // first copy of each group, and the number of copies in the end
	search  []searcher // of each worker
}

// group is the beads of a quad.
type group struct {
	chain int32
	beads [quadSize]int32 // numbers within the chain
	used  int8            // lanes
	p, q  [quadSize]float64
}

// spot is where a group was: its beads, moved into the box as one, and a ball around them.
type spot struct {
	ball
	at    [quadSize]Vec
	moved Vec // what was subtracted from the positions
}

// copyOf is a place where the inner loops find a quad.
type copyOf struct {
	domain, local int32
	shift         Vec // to add to positions
}

// domain is quads, the owned ones first, and the pairs that it computes.
type domain struct {
	pairList
	quads []quad
	halo  []image // groups that follow the owned ones
	own   []int32 // groups
}

// image is a group moved by edges of the box.
type image struct {
	group int32
	shift Vec
}

// newDomains takes the numbers of the beads that interact, within each chain, and the
// parameters of a bead of a chain.
func newDomains(m *Mixture, cutoff float64, beadsOf func(*Model) []int32, parameters func(m *Model, bead int) (p, q float64)) *domains {
	d := &domains{box: m.Box, reach: cutoff + skin, axis: longestAxis(m.Box), ofChain: []int32{0}}
	for chain, model := range m.model {
		for beads := range slices.Chunk(beadsOf(model), quadSize) {
			g := group{chain: int32(chain), used: int8(len(beads))}
			for lane := range quadSize {
				bead := beads[min(lane, len(beads)-1)]
				g.beads[lane] = bead
				if lane < len(beads) {
					g.p[lane], g.q[lane] = parameters(model, int(bead))
				}
			}
			d.groups = append(d.groups, g)
		}
		d.ofChain = append(d.ofChain, int32(len(d.groups)))
	}
	n := len(d.groups)
	d.spots = make([]spot, n)
	d.order = make([]int32, n)
	d.rank = make([]int32, n)
	d.start = make([]int32, n+1)
	count := max(1, min(mostDomains, n/quadsOfDomain))
	if n == 0 {
		count = 0
	}
	d.domain = make([]domain, count)
	return d
}

// build makes lists for positions of all beads.
func (d *domains) build(m *Mixture, x []Vec, team *Team) {
	if len(d.groups) == 0 {
		return
	}
	const batch = 64 // groups
	team.Each((len(d.groups)+batch-1)/batch, func(_, task int) {
		for k := task * batch; k < min(len(d.groups), (task+1)*batch); k++ {
			d.spots[k] = d.locate(m, x, k)
		}
	})
	d.sort()
	d.cells.fill(d)
	if len(d.search) < team.Size() {
		d.search = make([]searcher, team.Size())
	}
	team.Each(len(d.domain), func(worker, task int) { d.search[worker].find(d, task) })
	d.listCopies()
}

// locate returns where a group is.
func (d *domains) locate(m *Mixture, x []Vec, k int) spot {
	g, s := &d.groups[k], spot{}
	of := Of(m, x, int(g.chain))
	for lane := range int(g.used) {
		s.centre = s.centre.AddScaled(1/float64(g.used), of[g.beads[lane]])
	}
	s.moved = m.cell(s.centre)
	s.centre = s.centre.Sub(s.moved)
	for lane := range quadSize {
		s.at[lane] = of[g.beads[lane]].Sub(s.moved)
		s.radius = max(s.radius, s.at[lane].Sub(s.centre).Norm())
	}
	return s
}

// longestAxis is along the longest edge of a box.
func longestAxis(box Vec) int {
	switch {
	case box.X > box.Y && box.X > box.Z:
		return 0
	case box.Y > box.Z:
		return 1
	}
	return 2
}

// along is a coordinate.
func (v Vec) along(axis int) float64 {
	switch axis {
	case 0:
		return v.X
	case 1:
		return v.Y
	}
	return v.Z
}

// sort orders the groups along the longest edge.
func (d *domains) sort() {
	for k := range d.order {
		d.order[k] = int32(k)
	}
	slices.SortFunc(d.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(d.spots[a].centre.along(d.axis), d.spots[b].centre.along(d.axis)), cmp.Compare(a, b))
	})
	for rank, k := range d.order {
		d.rank[k] = int32(rank)
	}
	n := len(d.order)
	for k := range d.domain {
		d.domain[k].own = d.order[k*n/len(d.domain) : (k+1)*n/len(d.domain)]
	}
}

// listCopies finds for each group where its quads are.
func (d *domains) listCopies() {
	clear(d.start)
	for k := range d.domain {
		for _, g := range d.domain[k].own {
			d.start[g+1]++
		}
		for _, h := range d.domain[k].halo {
			d.start[h.group+1]++
		}
	}
	for k := range d.groups {
		d.start[k+1] += d.start[k]
	}
	n := int(d.start[len(d.groups)])
	d.copies = slices.Grow(d.copies[:0], n)[:n]
	at := slices.Clone(d.start)
	put := func(group int32, c copyOf) {
		d.copies[at[group]] = c
		at[group]++
	}
	for k := range d.domain {
		domain := &d.domain[k]
		for local, g := range domain.own {
			put(g, copyOf{int32(k), int32(local), Vec{}.Sub(d.spots[g].moved)})
		}
		for local, h := range domain.halo {
			put(h.group, copyOf{int32(k), int32(len(domain.own) + local), h.shift.Sub(d.spots[h.group].moved)})
		}
	}
}

// place copies positions of a chain's beads to the quads, and clears their forces.
func (d *domains) place(chain int, x []Vec) {
	for k := d.ofChain[chain]; k < d.ofChain[chain+1]; k++ {
		g := &d.groups[k]
		for _, c := range d.copies[d.start[k]:d.start[k+1]] {
			q := &d.domain[c.domain].quads[c.local]
			for lane := range quadSize {
				at := x[g.beads[lane]]
				q.x[lane], q.y[lane], q.z[lane] = at.X+c.shift.X, at.Y+c.shift.Y, at.Z+c.shift.Z
			}
			q.fx, q.fy, q.fz = [quadSize]float64{}, [quadSize]float64{}, [quadSize]float64{}
		}
	}
}

// addForces adds the forces on a chain's beads.
func (d *domains) addForces(chain int, to []Vec) {
	for k := d.ofChain[chain]; k < d.ofChain[chain+1]; k++ {
		g := &d.groups[k]
		var fx, fy, fz [quadSize]float64
		for _, c := range d.copies[d.start[k]:d.start[k+1]] {
			q := &d.domain[c.domain].quads[c.local]
			for lane := range quadSize {
				fx[lane] += q.fx[lane]
				fy[lane] += q.fy[lane]
				fz[lane] += q.fz[lane]
			}
		}
		for lane := range int(g.used) {
			f := &to[g.beads[lane]]
			f.X += fx[lane]
			f.Y += fy[lane]
			f.Z += fz[lane]
		}
	}
}

// bonded reports whether two lanes of groups hold beads that are bonded to each other.
func (d *domains) bonded(a, b *group, i, j int) bool {
	if a.chain != b.chain {
		return false
	}
	apart := a.beads[i] - b.beads[j]
	return apart == 1 || apart == -1
}

// validPairs returns the pairs of a group and another, or an image of either, without
// bonded ones and unused lanes. Those within one group count once.
func (d *domains) validPairs(k, l int32, same bool) uint16 {
	a, b := &d.groups[k], &d.groups[l]
	if a.chain != b.chain && a.used == quadSize && b.used == quadSize {
		return 1<<(quadSize*quadSize) - 1
	}
	var pairs uint16
	for i := range int(a.used) {
		for j := range int(b.used) {
			if same && i >= j || d.bonded(a, b, i, j) {
				continue
			}
			pairs |= 1 << (i*quadSize + j)
		}
	}
	return pairs
}

// cells sort the groups by place.
type cells struct {
	axis  int    // along which the groups are in order
	count [3]int // along each edge
	edge  Vec
	start []int32 // first group of each cell
	group []int32 // by cell
	most  float64 // radius of a ball
}

// wantedCell is about the edge of a cell in nm.
const wantedCell = 1.8

func (c *cells) fill(d *domains) {
	edge := func(length float64) (int, float64) {
		n := max(1, int(length/wantedCell))
		return n, length / float64(n)
	}
	c.count[0], c.edge.X = edge(d.box.X)
	c.count[1], c.edge.Y = edge(d.box.Y)
	c.count[2], c.edge.Z = edge(d.box.Z)
	c.axis = d.axis
	n := c.count[0] * c.count[1] * c.count[2]
	c.start = slices.Grow(c.start[:0], n+1)[:n+1]
	clear(c.start)
	c.most = 0
	in := make([]int32, len(d.groups))
	for k := range d.spots {
		s := &d.spots[k]
		c.most = max(c.most, s.radius)
		in[k] = int32((c.index(s.centre.Z/c.edge.Z, 2)*c.count[1]+c.index(s.centre.Y/c.edge.Y, 1))*c.count[0] + c.index(s.centre.X/c.edge.X, 0))
		c.start[in[k]+1]++
	}
	for k := range n {
		c.start[k+1] += c.start[k]
	}
	c.group = slices.Grow(c.group[:0], len(d.groups))[:len(d.groups)]
	at := slices.Clone(c.start)
	for k, cell := range in {
		c.group[at[cell]] = int32(k)
		at[cell]++
	}
}

// index is that of a cell along an axis; rounding may have put a position on the far edge.
func (c *cells) index(v float64, axis int) int { return max(0, min(c.count[axis]-1, int(v))) }

// near calls found for the groups of all cells, and their images, that come within a
// distance of a place in the box. It leaves out cells that hold only groups of lower ranks
// than those in the cell of the place, as half of them do.
func (c *cells) near(at Vec, distance float64, found func(groups []int32, shift Vec)) {
	low := func(v, edge float64) int { return int(math.Floor((v - distance) / edge)) }
	high := func(v, edge float64) int { return int(math.Floor((v + distance) / edge)) }
	var lower [3]int // cells before this one are left out
	lower[c.axis] = c.index(at.along(c.axis)/c.edge.along(c.axis), c.axis)
	for z := low(at.Z, c.edge.Z); z <= high(at.Z, c.edge.Z); z++ {
		dz := outside(at.Z, float64(z)*c.edge.Z, c.edge.Z)
		cz, sz := wrapped(z, c.count[2])
		if cz < lower[2] {
			continue
		}
		for y := low(at.Y, c.edge.Y); y <= high(at.Y, c.edge.Y); y++ {
			dy := outside(at.Y, float64(y)*c.edge.Y, c.edge.Y)
			cy, sy := wrapped(y, c.count[1])
			if cy < lower[1] || dy*dy+dz*dz > distance*distance {
				continue
			}
			for x := low(at.X, c.edge.X); x <= high(at.X, c.edge.X); x++ {
				dx := outside(at.X, float64(x)*c.edge.X, c.edge.X)
				cx, sx := wrapped(x, c.count[0])
				if cx < lower[0] || dx*dx+dy*dy+dz*dz > distance*distance {
					continue
				}
				cell := (cz*c.count[1]+cy)*c.count[0] + cx
				if groups := c.group[c.start[cell]:c.start[cell+1]]; len(groups) > 0 {
					found(groups, Vec{
						float64(sx*c.count[0]) * c.edge.X,
						float64(sy*c.count[1]) * c.edge.Y,
						float64(sz*c.count[2]) * c.edge.Z,
					})
				}
			}
		}
	}
}

// outside is how far a coordinate is from an interval.
func outside(v, low, length float64) float64 { return max(0, low-v, v-low-length) }

// wrapped returns the cell that a number outside of the box stands for, and how many
// boxes away it is.
func wrapped(cell, count int) (in, boxes int) {
	in = cell % count
	if in < 0 {
		in += count
	}
	return in, (cell - in) / count
}
