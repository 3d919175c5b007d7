package structure

import (
	"math"
	"slices"
)

// trustSequence resets membership to unknown if no residue has a sequence number, because
// the file then has no such numbers.
func (m *Model) trustSequence() {
	if slices.ContainsFunc(m.Residues, func(r *Residue) bool { return r.member != outside }) {
		return
	}
	for _, r := range m.Residues {
		r.member = unknown
	}
}

// classify sets the kind of each residue.
func (m *Model) classify() {
	for k, r := range m.Residues {
		switch r.Kind = r.alike(); {
		case isWater(r.Name):
			r.Kind = Water
		case r.member == inside, r.member == unknown && r.Kind != Ligand && !r.Hetero:
			r.member = inside
		case r.member == unknown && r.Kind != Ligand && m.paired(k):
			r.member = inside
		}
	}
	m.bind()
	m.enclose()
	for k, r := range m.Residues {
		switch {
		case r.Kind == Water:
		case r.member != inside:
			r.Kind = Ligand
		case r.Kind == Ligand:
			r.Kind = m.kindBeside(k)
		}
	}
}

// alike returns the kind of polymer that a residue could belong to.
func (r *Residue) alike() Kind {
	switch {
	case isAmino(r.Name):
		return Protein
	case slices.Contains(nucleos, r.Name):
		return Nucleic
	case r.Backbone():
		return Protein
	case r.Atom("C1'") != nil && r.Atom("O3'") != nil && r.Atom("O5'") != nil && len(r.Atoms) < 30: // coenzymes are larger
		return Nucleic
	}
	return Ligand
}

// paired reports whether a HETATM residue is bound to the one before or after it, within
// a chain of such residues.
func (m *Model) paired(k int) bool {
	bound := func(i int) bool {
		if i == 0 || i == len(m.Residues) {
			return false
		}
		a, b := m.Residues[i-1], m.Residues[i]
		return a.Hetero && b.Hetero && !b.afterPolymer && a.alike() != Ligand && b.alike() != Ligand && m.joined(i)
	}
	return bound(k) || bound(k+1)
}

// bind makes residues that are bound to a polymer part of it.
func (m *Model) bind() {
	bound := func(r, to *Residue, k int) bool {
		return r.member == unknown && r.Kind != Water && to.member == inside && m.joined(k)
	}
	for k := 1; k < len(m.Residues); k++ {
		if r := m.Residues[k]; bound(r, m.Residues[k-1], k) {
			r.member = inside
		}
	}
	for k := len(m.Residues) - 1; k > 0; k-- {
		if r, to := m.Residues[k-1], m.Residues[k]; bound(r, to, k) {
			r.member, r.Part = inside, to.Part
		}
	}
}

// enclose adds residues that could belong to a polymer to it if their numbers are in
// order before a later residue of the polymer, or if they come right before its TER
// record. They are not bound to the polymer where residues in between are missing.
func (m *Model) enclose() {
	type line struct {
		chain string
		part  int
	}
	behind := make([]*Residue, len(m.Residues)) // the next residue of the polymer
	next, last := map[line]*Residue{}, map[line]*Residue{}
	for k, r := range slices.Backward(m.Residues) {
		at := line{r.Chain, r.Part}
		if behind[k] = next[at]; r.member == inside {
			next[at] = r
		}
	}
	for k, r := range m.Residues {
		at := line{r.Chain, r.Part}
		before, after := last[at], behind[k]
		inOrder := (before == nil || before.Number <= r.Number) && after != nil && r.Number <= after.Number
		if r.member == unknown && r.Hetero && !r.afterPolymer && r.Kind != Ligand && r.Kind != Water && (inOrder || before != nil && after == nil && r.ends) {
			r.member = inside
		}
		if r.member == inside {
			last[at] = r
		}
	}
}

// kindBeside returns the kind of polymer for a residue whose own kind is not evident,
// judging by its neighbors.
func (m *Model) kindBeside(k int) Kind {
	for _, i := range []int{k - 1, k + 1} {
		if i >= 0 && i < len(m.Residues) && m.Residues[i].Chain == m.Residues[k].Chain && m.Residues[i].alike() != Ligand {
			return m.Residues[i].alike()
		}
	}
	return Protein
}

// longestBond is the length in Å of a peptide bond (1.33) or a phosphoester bond (1.6),
// with the tolerance that poor structures need.
const longestBond = 2.0

// joined reports whether a residue is bound to the previous one as in a chain.
// Nonstandard residues can have other atom names, as in the chromophores of fluorescent
// proteins.
func (m *Model) joined(k int) bool {
	before, after := m.Residues[k-1], m.Residues[k]
	if before.Chain != after.Chain || after.starts {
		return false
	}
	anyEnd, anyBegin := before.Hetero && !after.Hetero, after.Hetero && !before.Hetero
	for _, a := range before.Atoms {
		if !anyEnd && a.Name != "C" && a.Name != "O3'" {
			continue
		}
		for _, b := range after.Atoms {
			if (anyBegin || b.Name == "N" || b.Name == "P") && Distance(a, b) <= longestBond {
				return true
			}
		}
	}
	return false
}

// Distance returns the distance between two atoms in Å.
func Distance(a, b *Atom) float64 {
	x, y, z := a.Position[0]-b.Position[0], a.Position[1]-b.Position[1], a.Position[2]-b.Position[2]
	return math.Sqrt(x*x + y*y + z*z)
}

// chain groups the residues of polymers into chains.
func (m *Model) chain() {
	type line struct {
		name string
		part int
		kind Kind
	}
	of := map[line]*Chain{}
	for _, r := range m.Residues {
		if !r.polymer() {
			continue
		}
		at := line{r.Chain, r.Part, r.Kind}
		c := of[at]
		if c == nil {
			c = &Chain{Name: r.Chain, Part: r.Part, Kind: r.Kind}
			of[at] = c
			m.Chains = append(m.Chains, c)
		}
		c.Residues = append(c.Residues, r)
	}
}
