package md

import "slices"

// searcher finds the pairs of domains, one after the other.
type searcher struct {
	slot []int32 // for each group, 1 + the last of its images in the halo; 0: none
	next []int32 // for each image in the halo, 1 + the one before of the same group
}

// find makes the lists of a domain.
func (s *searcher) find(d *domains, number int) {
	domain := &d.domain[number]
	domain.start = append(domain.start[:0], 0)
	domain.tiles = domain.tiles[:0]
	domain.halo = domain.halo[:0]
	s.slot = slices.Grow(s.slot[:0], len(d.groups))[:len(d.groups)]
	clear(s.slot)
	s.next = s.next[:0]
	first := d.rank[domain.own[0]]
	for local, k := range domain.own {
		s.row(d, domain, k, first+int32(local))
		domain.start = append(domain.start, int32(len(domain.tiles)))
	}
	if len(domain.own)+len(domain.halo) > 1<<16 {
		panic("a domain with more quads than the lists can number")
	}
	domain.fillQuads(d)
}

// row lists the partners of a group: those of a higher rank.
func (s *searcher) row(d *domains, domain *domain, k, rank int32) {
	a := &d.spots[k]
	own := rank - d.rank[domain.own[0]]
	d.cells.near(a.centre, d.reach+a.radius+d.cells.most, func(groups []int32, shift Vec) {
		for _, l := range groups {
			if d.rank[l] < rank || l == k && !ahead(shift) {
				continue
			}
			if !touches(a, &d.spots[l], shift, d.reach) {
				continue
			}
			same := l == k && shift == Vec{}
			t := tile{pairs: d.validPairs(k, l, same)}
			if t.pairs == 0 {
				continue
			}
			if here := own + d.rank[l] - rank; shift == (Vec{}) && int(here) < len(domain.own) {
				t.quad = uint16(here)
			} else {
				t.quad = uint16(len(domain.own) + s.image(domain, l, shift))
			}
			domain.tiles = append(domain.tiles, t)
		}
	})
}

// ahead tells a shift from its opposite, so that a group meets each of its own images
// once. It is true for no shift.
func ahead(s Vec) bool {
	switch {
	case s.X != 0:
		return s.X > 0
	case s.Y != 0:
		return s.Y > 0
	}
	return s.Z >= 0
}

// touches reports whether two groups, the second moved by a shift, have beads within
// reach of each other.
func touches(a, b *spot, shift Vec, reach float64) bool {
	far := reach + a.radius + b.radius
	centre := Vec{b.centre.X + shift.X, b.centre.Y + shift.Y, b.centre.Z + shift.Z}
	apart2 := a.centre.Sub(centre).Norm2()
	if apart2 > far*far {
		return false
	}
	if apart2 < reach*reach {
		return true
	}
	for i := range quadSize {
		from := a.at[i].Sub(shift)
		for j := range quadSize {
			if from.Sub(b.at[j]).Norm2() < reach*reach {
				return true
			}
		}
	}
	return false
}

// image returns the place of a group's image in the halo.
func (s *searcher) image(domain *domain, group int32, shift Vec) int {
	for k := s.slot[group]; k > 0; k = s.next[k-1] {
		if domain.halo[k-1].shift == shift {
			return int(k - 1)
		}
	}
	domain.halo = append(domain.halo, image{group, shift})
	s.next = append(s.next, s.slot[group])
	s.slot[group] = int32(len(domain.halo))
	return len(domain.halo) - 1
}

// fillQuads sets the parameters of the quads. Positions follow.
func (domain *domain) fillQuads(d *domains) {
	n := len(domain.own) + len(domain.halo)
	domain.quads = slices.Grow(domain.quads[:0], n)[:n]
	for local, k := range domain.own {
		domain.quads[local].p, domain.quads[local].q = d.groups[k].p, d.groups[k].q
	}
	for local, h := range domain.halo {
		q := &domain.quads[len(domain.own)+local]
		q.p, q.q = d.groups[h.group].p, d.groups[h.group].q
	}
}
