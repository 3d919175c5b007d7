package structsum

import (
	"cmp"
	"math"
	"slices"

	"molrun/app/base/structure"
)

// contact is the minimum distance between heavy atoms of two residues.
type contact struct {
	a, b     *residue
	distance float64
}

// contacts returns the pairs of residues with heavy atoms within a cutoff in Å, in
// residue order.
func contacts(residues []*residue, cutoff float64) []contact {
	type place [3]int
	type entry struct {
		residue int
		atom    *structure.Atom
	}
	cells := map[place][]entry{}
	cell := func(a *structure.Atom) (p place) {
		for k, x := range a.Position {
			p[k] = int(math.Floor(x / cutoff))
		}
		return p
	}
	least := map[[2]int]float64{}
	for n, r := range residues {
		for _, a := range r.atoms {
			at := cell(a)
			for k := range 27 {
				beside := place{at[0] + k%3 - 1, at[1] + k/3%3 - 1, at[2] + k/9 - 1}
				for _, other := range cells[beside] {
					if d := structure.Distance(a, other.atom); d <= cutoff && other.residue != n {
						pair := [2]int{other.residue, n}
						if nearest, ok := least[pair]; !ok || d < nearest {
							least[pair] = d
						}
					}
				}
			}
			cells[at] = append(cells[at], entry{n, a})
		}
	}
	pairs := make([][2]int, 0, len(least))
	for pair := range least {
		pairs = append(pairs, pair)
	}
	slices.SortFunc(pairs, func(x, y [2]int) int { return cmp.Or(x[0]-y[0], x[1]-y[1]) })
	all := make([]contact, len(pairs))
	for k, pair := range pairs {
		all[k] = contact{residues[pair[0]], residues[pair[1]], least[pair]}
	}
	return all
}

// leastSeparation is the minimum separation along a chain for contacts that are
// informative about the fold.
const leastSeparation = 4

// folding removes contacts between residues that are close along the chain.
func folding(all []contact) []contact {
	return slices.DeleteFunc(slices.Clone(all), func(c contact) bool {
		return c.a.ChainID() == c.b.ChainID() && max(c.a.index-c.b.index, c.b.index-c.a.index) < leastSeparation
	})
}

// longestDisulfide is the maximum length of a disulfide bond (2.05) in Å.
const longestDisulfide = 2.5

// disulfides returns the pairs of cysteines in disulfide bonds.
func disulfides(residues []*residue) (pairs [][2]*residue) {
	var cysteines []*residue
	for _, r := range residues {
		if r.Letter() == "C" && r.atom("SG") != nil {
			cysteines = append(cysteines, r)
		}
	}
	for k, a := range cysteines {
		for _, b := range cysteines[k+1:] {
			if structure.Distance(a.atom("SG"), b.atom("SG")) <= longestDisulfide {
				pairs = append(pairs, [2]*residue{a, b})
			}
		}
	}
	return pairs
}
