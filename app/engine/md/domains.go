package md

import (
	"iter"
	"slices"
)

// Domains divide the beads of a mixture, or its charged ones, among tasks that compute
// forces concurrently. The inner loops process quads of consecutive beads of one chain. A
// domain owns quads that are close to each other along the longest edge of the box. It
// also has a halo: copies of the quads that interact with its own quads but belong to
// another domain or lie across the periodic boundary. Each pair of quads belongs to
// exactly one domain. The force on a bead is the sum over the copies of its quad, in the
// order of the domains, so it depends on the positions and on when the lists were built,
// but not on which worker computed which domain.
//
// Neighbor lists extend beyond the cutoff by outerSkin and are valid for tens of steps.
// Between two builds, they are pruned every few steps to pairs within the cutoff plus
// innerSkin. Pruning removes only pairs whose force is zero, so it changes no bit of a
// result.
const (
	outerSkin = 0.7 // nm
	innerSkin = 0.1 // nm

	// Larger domains have a smaller fraction of copies; more domains use more processors.
	quadsOfDomain = 640 // approximate number owned by a domain in large systems
	leastQuads    = 200 // in small systems
	fewDomains    = 12  // above this number, domains get larger instead
	mostDomains   = 64
)

// domains holds all domains for one kind of interaction.
type domains struct {
	cutoff  float64       // nm
	reach   float64       // nm, cutoff plus outerSkin
	groups  []group       // quads, in the order of chains
	params  []parameters  // by group
	ofChain []int32       // index of the first group of each chain, then the number of groups
	spots   []groupSphere // position of each group when the lists were built
	cells   cells
	domain  []domain   // one per task
	copies  []copyOf   // sorted by group
	start   []int32    // index of the first copy of each group, then the number of copies
	search  []searcher // per worker
}

// group identifies the beads of a quad.
type group struct {
	beads [quadSize]int32 // indexes within the chain
	chain int32
	used  int8 // number of lanes
}

// parameters are the force parameters of a quad (see quad). They are separate from
// groups, which every step reads in full, because only list building needs them.
type parameters struct{ p, q [quadSize]float64 }

// groupSphere is the position of a group: the bounding sphere of its beads, wrapped into the box
// as a whole.
type groupSphere struct {
	ball
	moved Vec // subtracted from the positions to wrap
}

// copyOf is the location of a quad for the inner loops.
type copyOf struct{ domain, local int32 }

// origin is the source of the positions of a quad.
type origin struct {
	beads [quadSize]int32 // indexes in the mixture
	shift fineVec         // added to the positions
}

// domain is a set of quads, owned ones first, with the list of pairs that it computes.
type domain struct {
	pairList
	near  pairList // subset of pairList within reach for the next few steps
	quads []quad32
	from  []origin // per quad
	halo  []image  // groups that follow the owned ones
	own   []int32  // groups
	first int32    // rank of the first owned group
}

// image is a periodic image of a group, given by its rank and shift.
type image struct {
	rank  int32
	shift Vec
}

// newDomains divides a mixture. beadsOf returns the indexes of the interacting beads of a
// chain, and parametersOf the parameters of a bead.
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
	d.spots = make([]groupSphere, n)
	d.start = make([]int32, n+1)
	d.domain = make([]domain, domainsFor(n))
	return d
}

// domainsFor returns the number of domains for a number of groups.
func domainsFor(groups int) int {
	if groups == 0 {
		return 0
	}
	return max(1, min(mostDomains, max(groups/quadsOfDomain, min(fewDomains, groups/leastQuads))))
}

// groupsOf divides the beads of a chain into groups.
func groupsOf(beads []int32) iter.Seq[[]int32] {
	return func(yield func([]int32) bool) {
		for first := 0; first < len(beads); {
			last := first + 1
			for last < len(beads) && last-first < quadSize && beads[last]-beads[first] <= maxGroupSpan {
				last++
			}
			if !yield(beads[first:last]) {
				return
			}
			first = last
		}
	}
}

// build builds the lists for the positions of all beads, given in nm and in units of
// positionUnit.
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
		domain.pruneTo(&domain.near, d.reach)
		domain.pairList, domain.near = domain.near, domain.pairList
	})
	d.listCopies()
}

// locate returns the bounding sphere of a group, wrapped into the box.
func (d *domains) locate(m *Mixture, x []Vec, k int) groupSphere {
	g, s := &d.groups[k], groupSphere{}
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

// listCopies lists the copies of each group.
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

// placeBeads copies the positions of all beads, in units of positionUnit, to the quads of
// a domain, and clears their forces.
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

// prefetchForces prefetches the forces on a chain's beads into the cache. Their addresses
// are scattered, and loading them one at a time would stall on each. The sum has no
// meaning; it only forces the loads.
func (d *domains) prefetchForces(chain int) (sum float32) {
	from, to := d.start[d.ofChain[chain]], d.start[d.ofChain[chain+1]]
	for _, c := range d.copies[from:to] {
		sum += d.domain[c.domain].quads[c.local].fx[0]
	}
	return sum
}

// addForces adds the forces on a chain's beads to the slice to.
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
			f.X += positionUnit * fx[lane]
			f.Y += positionUnit * fy[lane]
			f.Z += positionUnit * fz[lane]
		}
	}
}

// pruneTo writes the pairs of the list that are within reach, at the placed positions, to
// another list.
func (domain *domain) pruneTo(to *pairList, reach float64) {
	prune(domain.quads, &domain.pairList, to, float32(reach*reach))
}

// bonded reports whether the beads in two lanes are bonded to each other.
func (d *domains) bonded(a, b *group, i, j int) bool {
	if a.chain != b.chain {
		return false
	}
	apart := a.beads[i] - b.beads[j]
	return apart == 1 || apart == -1
}

// kinOf returns a number that two groups share if some of their pairs might not be valid.
func (d *domains) kinOf(k int32) int32 {
	if d.groups[k].used < quadSize {
		return someLanes
	}
	return d.groups[k].chain
}

// someLanes is the result of kinOf for groups with unused lanes; none of their tiles has
// only valid pairs.
const someLanes = -1

// validPairs returns the pairs between a group and another group or periodic image,
// without bonded pairs and unused lanes. Pairs within one group count once.
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
