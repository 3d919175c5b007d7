package structure

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// writeMethionines gives the selenomethionines of chains, which are HETATM, sulfur and the
// name MET, and returns what they are called. The error names other residues of chains that
// are HETATM: without them, the chain has a hole or an end that it should not have.
func writeMethionines(all []*Atom) (written []string, err error) {
	residues := residuesOf(all)
	var holes []string
	for k, in := range inChains(residues) {
		r := residues[k]
		switch name := fmt.Sprintf("%s:%s%d%s", r[0].Chain, r[0].Residue, r[0].Number, r[0].Insertion); {
		case !in || !r.hetero():
		case r[0].Residue == "MSE":
			written = append(written, name)
			for _, a := range r {
				a.Residue, a.Hetero = "MET", false
				if a.Name == "SE" {
					a.Name, a.Element = "SD", "S"
				}
			}
		case r.has("N") && r.has("CA") && r.has("C") || joined(residues, k) && joined(residues, k+1):
			holes = append(holes, name)
		}
	}
	if len(holes) > 0 {
		more := ""
		if n := len(holes) - 10; n > 0 {
			holes, more = holes[:10], fmt.Sprintf(" and %d more", n)
		}
		return nil, fmt.Errorf("has residues in its chains that are HETATM, without which the chains have holes: %s%s; replace them by standard residues, as ATOM", strings.Join(holes, ", "), more)
	}
	return written, nil
}

// residue is the atoms of one that follow one another.
type residue []*Atom

func residuesOf(all []*Atom) (residues []residue) {
	for k, a := range all {
		if k == 0 || a.Chain != all[k-1].Chain || a.Number != all[k-1].Number || a.Insertion != all[k-1].Insertion {
			residues = append(residues, nil)
		}
		last := len(residues) - 1
		residues[last] = append(residues[last], a)
	}
	return residues
}

// hetero reports whether all atoms are HETATM; of a residue that alternates with another
// one, only some may be.
func (r residue) hetero() bool {
	return !slices.ContainsFunc(r, func(a *Atom) bool { return !a.Hetero })
}

func (r residue) has(name string) bool {
	return slices.ContainsFunc(r, func(a *Atom) bool { return a.Name == name })
}

// inChains reports which residues are bound to one that is ATOM, themselves or by others.
func inChains(residues []residue) []bool {
	in := make([]bool, len(residues))
	for k, r := range residues {
		in[k] = !r.hetero() || k > 0 && in[k-1] && joined(residues, k)
	}
	for k := len(residues) - 2; k >= 0; k-- {
		in[k] = in[k] || in[k+1] && joined(residues, k+1)
	}
	return in
}

// longestBond is that of a peptide (1.33 Å) or an ester of phosphoric acid (1.6), with what
// poor structures deviate.
const longestBond = 2.0

// joined reports whether a residue is bound to the one before it as in a chain. What is not
// standard may call its atoms otherwise, as the chromophores of fluorescent proteins do.
func joined(residues []residue, k int) bool {
	if k == 0 || k == len(residues) || residues[k-1][0].Chain != residues[k][0].Chain {
		return false
	}
	before, after := residues[k-1], residues[k]
	anyEnd, anyBegin := before.hetero() && !after.hetero(), after.hetero() && !before.hetero()
	for _, a := range before {
		if !anyEnd && a.Name != "C" && a.Name != "O3'" {
			continue
		}
		for _, b := range after {
			if (anyBegin || b.Name == "N" || b.Name == "P") &&
				math.Hypot(math.Hypot(a.Place[0]-b.Place[0], a.Place[1]-b.Place[1]), a.Place[2]-b.Place[2]) <= longestBond {
				return true
			}
		}
	}
	return false
}
