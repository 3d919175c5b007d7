package md

import (
	"iter"
	"slices"
)

// Domains divide the beads of a mixture, or its charged ones, among tasks that compute
// forces at the same time. The inner loops take quads of consecutive beads of one chain;
// a domain owns quads that are near each other along the longest edge of the box, and has
// copies, its halo, of those that they interact with and that another domain owns or that
// lie across the boundary. A pair of quads belongs to one domain alone. The force on a
// bead is the sum over the copies of its quad, in the order of the domains, so that it
// depends on the positions and on when the lists were built, but not on who computed what.
//
// Lists reach beyond the cutoff by outerSkin and hold for some tens of steps. Between two
// builds, they are pruned every few steps to what is within the cutoff and innerSkin. That
// leaves out pairs whose force is zero and changes no bit of a result.
const (
	outerSkin = 0.7 // nm
	innerSkin = 0.1 // nm

	// A domain that is larger has a smaller part of copies; more domains occupy more
	// processors.
	quadsOfDomain = 640 // about as many are owned by one, in large systems
	leastQuads    = 200 // in small ones
	fewDomains    = 12  // from which on they become larger instead of more
	mostDomains   = 64
)

// domains are all of one kind of pairs.
type domains struct {
	cutoff  float64      // nm
	reach   float64      // nm, cutoff and outerSkin
	groups  []group      // quads, chain after chain
	params  []parameters // of each group
	ofChain []int32      // first group of each chain, and the number of groups in the end
	spots   []spot       // where each group was when the lists were built
	cells   cells
	domain  []domain   // tasks
	copies  []copyOf   // of each group, group after group
	start   []int32    // first copy of each group, and the number of copies in the end
	search  []searcher // of each worker
}

// group is the beads of a quad.
type group struct {
	beads [quadSize]int32 // numbers within the chain
	chain int32
	used  int8 // lanes
}

// parameters are the force parameters of a quad (see quad). They are kept apart from groups, which every step
// reads in full: only building the lists needs them.
type parameters struct{ p, q [quadSize]float64 }

// spot is where a group was: a ball around its beads, moved into the box as one.
type spot struct {
	ball
	moved Vec // what was subtracted from the positions
}

// copyOf is a place where the inner loops find a quad.
type copyOf struct{ domain, local int32 }

// origin is where the positions of a quad come from.
type origin struct {
	beads [quadSize]int32 // of the mixture
	shift fineVec         // to add
}

// domain is quads, the owned ones first, and the pairs that it computes.
type domain struct {
	pairList
	near  pairList // the part of it that is within reach for the next few steps
	quads []quad32
	from  []origin // of each quad
	halo  []image  // groups that follow the owned ones
	own   []int32  // groups
	first int32    // rank of the first one
}

// image is a group, given by its rank, moved by edges of the box.
type image struct {
	rank  int32
	shift Vec
}

// newDomains takes the numbers of the beads that interact, within each chain, and the
// parameters of a bead of a chain.
func newDomains(m *Mixture, cutoff float64, beadsOf func(*Model) []int32, parametersOf func(m *Model, bead int) (p, q float64)) *domains {
	d := &domains{cutoff: cutoff, reach: cutoff + outerSkin, cells: newCells(m.Box), ofChain: []int32{0}}
	for chain, model := range m.model {
		for beads := range groupsOf(beadsOf(model)) {
			g, params := group{chain: int32(chain), used: int8(len(beads))}, parameters{}
			for lane := range quadSize {
				bead := beads[min(lane, len(beads)-1)]
				g.beads[lane] = bead
				if lane < len(beads) {
					params.p[lane], params.q[lane] = parametersOf(model, int(bead))
				}
			}
			d.groups, d.params = append(d.groups, g), append(d.params, params)
		}
		d.ofChain = append(d.ofChain, int32(len(d.groups)))
	}
	n := len(d.groups)
	d.spots = make([]spot, n)
	d.start = make([]int32, n+1)
	d.domain = make([]domain, domainsFor(n))
	return d
}

// domainsFor is the number of domains for a number of groups.
func domainsFor(groups int) int {
	if groups == 0 {
		return 0
	}
	return max(1, min(mostDomains, max(groups/quadsOfDomain, min(fewDomains, groups/leastQuads))))
}

// groupsOf divides beads of a chain into groups.
func groupsOf(beads []int32) iter.Seq[[]int32] {
	return func(yield func([]int32) bool) {
		for first := 0; first < len(beads); {
			last := first + 1
			for last < len(beads) && last-first < quadSize && beads[last]-beads[first] <= mostApart {
				last++
			}
			if !yield(beads[first:last]) {
				return
			}
			first = last
		}
	}
}

// build makes lists for positions of all beads, which are given in both units.
func (d *domains) build(m *Mixture, x []Vec, fine []fineVec, team *Team) {
	if len(d.groups) == 0 {
		return
	}
	const batch = 64 // groups
	team.Each((len(d.groups)+batch-1)/batch, func(_, task int) {
		for k := task * batch; k < min(len(d.groups), (task+1)*batch); k++ {
			d.spots[k] = d.locate(m, x, k)
		}
	})
	d.cells.sortGroups(d.spots, d.kinOf)
	for k := range d.domain {
		d.domain[k].first = int32(k * len(d.groups) / len(d.domain))
		d.domain[k].own = d.cells.order[d.domain[k].first : (k+1)*len(d.groups)/len(d.domain)]
	}
	if len(d.search) < team.Size() {
		d.search = make([]searcher, team.Size())
	}
	team.Each(len(d.domain), func(worker, task int) {
		domain := &d.domain[task]
		d.search[worker].findPairs(m, d, domain)
		domain.placeBeads(fine)
		domain.shorten(&domain.near, d.reach)
		domain.pairList, domain.near = domain.near, domain.pairList
	})
	d.listCopies()
}

// locate returns where a group is.
func (d *domains) locate(m *Mixture, x []Vec, k int) spot {
	g, s := &d.groups[k], spot{}
	of := PartOf(m, x, int(g.chain))
	for lane := range int(g.used) {
		s.centre = s.centre.AddScaled(1/float64(g.used), of[g.beads[lane]])
	}
	for lane := range quadSize {
		s.radius = max(s.radius, of[g.beads[lane]].Sub(s.centre).Norm())
	}
	s.moved = m.cell(s.centre)
	s.centre = s.centre.Sub(s.moved)
	return s
}

// listCopies finds for each group where its quads are.
func (d *domains) listCopies() {
	clear(d.start)
	for k := range d.domain {
		for _, g := range d.domain[k].own {
			d.start[g+1]++
		}
		for _, h := range d.domain[k].halo {
			d.start[d.cells.order[h.rank]+1]++
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
			put(g, copyOf{int32(k), int32(local)})
		}
		for local, h := range domain.halo {
			put(d.cells.order[h.rank], copyOf{int32(k), int32(len(domain.own) + local)})
		}
	}
}

// placeBeads copies positions of all beads, in units of fine, to the quads of a task, and clears
// their forces.
func (domain *domain) placeBeads(x []fineVec) {
	for local := range domain.quads {
		q, from := &domain.quads[local], &domain.from[local]
		for lane := range quadSize {
			at := &x[from.beads[lane]]
			q.x[lane], q.y[lane], q.z[lane] = at[0]+from.shift[0], at[1]+from.shift[1], at[2]+from.shift[2]
		}
		q.fx, q.fy, q.fz = [quadSize]float32{}, [quadSize]float32{}, [quadSize]float32{}
	}
}

// fetch brings the forces on a chain's beads into the cache, many at a time. Where they are
// is without order, and one after the other they would be waited for. The sum has no meaning.
func (d *domains) fetch(chain int) (sum float32) {
	from, to := d.start[d.ofChain[chain]], d.start[d.ofChain[chain+1]]
	for _, c := range d.copies[from:to] {
		sum += d.domain[c.domain].quads[c.local].fx[0]
	}
	return sum
}

// addForces adds the forces on a chain's beads.
func (d *domains) addForces(chain int, to []Vec) {
	for k := d.ofChain[chain]; k < d.ofChain[chain+1]; k++ {
		g := &d.groups[k]
		var fx, fy, fz [quadSize]float64
		for _, c := range d.copies[d.start[k]:d.start[k+1]] {
			q := &d.domain[c.domain].quads[c.local]
			for lane := range quadSize {
				fx[lane] += float64(q.fx[lane])
				fy[lane] += float64(q.fy[lane])
				fz[lane] += float64(q.fz[lane])
			}
		}
		for lane := range int(g.used) {
			f := &to[g.beads[lane]]
			f.X += fine * fx[lane]
			f.Y += fine * fy[lane]
			f.Z += fine * fz[lane]
		}
	}
}

// shorten writes the part of the list that is within reach for the placed positions to
// another one.
func (domain *domain) shorten(to *pairList, reach float64) {
	prune(domain.quads, &domain.pairList, to, float32(reach*reach))
}

// bonded reports whether two lanes of groups hold beads that are bonded to each other.
func (d *domains) bonded(a, b *group, i, j int) bool {
	if a.chain != b.chain {
		return false
	}
	apart := a.beads[i] - b.beads[j]
	return apart == 1 || apart == -1
}

// kinOf returns a number that groups share if some of their pairs might not be valid.
func (d *domains) kinOf(k int32) int32 {
	if d.groups[k].used < quadSize {
		return someLanes
	}
	return d.groups[k].chain
}

// someLanes is for groups with unused lanes, which are in no pair of which all are valid.
const someLanes = -1

// validPairs returns the pairs of a group and another, or an image of either, without
// bonded ones and unused lanes. Those within one group count once.
func (d *domains) validPairs(k, l int32, same bool) uint16 {
	a, b := &d.groups[k], &d.groups[l]
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
