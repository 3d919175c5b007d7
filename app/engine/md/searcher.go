package md

import "slices"

// searcher finds the pairs of one domain at a time.
type searcher struct {
	slot []int32 // by rank, 1 + index of its last image in the halo; 0 if none
	next []int32 // by halo image, 1 + index of the previous image of its group
	runs []run
	hits []int32
}

// findPairs lists the pairs of groups of a domain whose bounding spheres are within reach
// of each other.
func (s *searcher) findPairs(m *Mixture, d *domains, domain *domain) {
	domain.start = append(domain.start[:0], 0)
	domain.tiles = domain.tiles[:0]
	domain.halo = domain.halo[:0]
	if s.slot == nil {
		s.slot = make([]int32, len(d.groups))
	}
	s.next = s.next[:0]
	for local := range domain.own {
		s.row(d, domain, int32(local))
		domain.start = append(domain.start, int32(len(domain.tiles)))
	}
	if len(domain.own)+len(domain.halo) > 1<<16 {
		panic("a domain with more quads than the lists can number")
	}
	for _, h := range domain.halo {
		s.slot[h.rank] = 0
	}
	domain.fillQuads(m, d)
}

// row lists the partners of an owned group: groups of higher rank whose bounding spheres
// are within reach of its own.
func (s *searcher) row(d *domains, domain *domain, local int32) {
	const rounding = 1e-3 // nm, more than the rounding error of spheres in a box of micrometers
	k, rank, c := domain.own[local], domain.first+local, &d.cells
	a := &d.spots[k]
	reach := d.reach + a.radius
	s.runs = c.near(a.centre, reach+c.maxRadius, s.runs[:0])
	for _, r := range s.runs {
		shift := c.shift(r.edges)
		own := shift == (Vec{})
		if r.from = max(r.from, rank); r.from == rank && r.from < r.to && !own && !ahead(shift) {
			r.from++ // the pair is counted with the opposite shift
		}
		if r.from >= r.to {
			continue
		}
		s.hits = c.touching(r, a.centre.Sub(shift), float32(reach+rounding), s.hits[:0])
		for _, hit := range s.hits {
			t := tile{pairs: allPairs}
			if c.kinds[hit] == c.kinds[rank] || c.kinds[hit] == someLanes || c.kinds[rank] == someLanes {
				if t.pairs = d.validPairs(k, c.order[hit], own && hit == rank); t.pairs == 0 {
					continue
				}
			}
			if here := hit - domain.first; own && int(here) < len(domain.own) {
				t.quad = uint16(here)
			} else {
				t.quad = uint16(len(domain.own) + s.image(domain, hit, shift))
			}
			domain.tiles = append(domain.tiles, t)
		}
	}
}

// ahead distinguishes a shift from its opposite, so that a group is paired with each of
// its own images once. It is true for zero shift.
func ahead(s Vec) bool {
	switch {
	case s.X != 0:
		return s.X > 0
	case s.Y != 0:
		return s.Y > 0
	}
	return s.Z >= 0
}

// image returns the index of a group's image in the halo, adding it if necessary.
func (s *searcher) image(domain *domain, rank int32, shift Vec) int {
	for k := s.slot[rank]; k > 0; k = s.next[k-1] {
		if domain.halo[k-1].shift == shift {
			return int(k - 1)
		}
	}
	domain.halo = append(domain.halo, image{rank, shift})
	s.next = append(s.next, s.slot[rank])
	s.slot[rank] = int32(len(domain.halo))
	return len(domain.halo) - 1
}

// fillQuads sets the parameters of the quads and the sources of their positions.
func (domain *domain) fillQuads(m *Mixture, d *domains) {
	n := len(domain.own) + len(domain.halo)
	domain.quads = slices.Grow(domain.quads[:0], n)[:n]
	domain.from = slices.Grow(domain.from[:0], n)[:n]
	for local := range domain.quads {
		k, shift := domain.source(d, local)
		g, q, from := &d.groups[k], &domain.quads[local], &domain.from[local]
		params := &d.params[k]
		for lane := range quadSize {
			q.p[lane], q.q[lane] = float32(params.p[lane]), float32(params.q[lane])
			from.beads[lane] = m.first[g.chain] + g.beads[lane]
		}
		from.shift = shift.fine()
	}
}

// source returns the group of a quad and the shift to add to the positions of its beads.
func (domain *domain) source(d *domains, local int) (k int32, shift Vec) {
	if local < len(domain.own) {
		k = domain.own[local]
	} else {
		h := &domain.halo[local-len(domain.own)]
		k, shift = d.cells.order[h.rank], h.shift
	}
	return k, shift.Sub(d.spots[k].moved)
}
