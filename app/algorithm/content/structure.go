package content

import (
	"cmp"
	"errors"
	"strings"

	"molrun/app/base/structure"
)

// maxAtoms limits the number of atoms in the first model of a structure, which is held in
// memory.
const maxAtoms = 3_000_000

func hydrogen(a *structure.Atom) bool {
	if a.Element != "" {
		return a.Hydrogen()
	}
	return !a.Hetero && strings.HasPrefix(strings.TrimLeft(a.Name, "0123456789"), "H")
}

// counted holds the counts of a structure.
type counted struct {
	heavy      int // atoms that are neither hydrogen nor water
	residues   int // amino acids of proteins
	backbone   int // residues with N, CA and C
	sidechains int // residues that have a side-chain atom or are glycine
	crowd      clashDetector
}

func (c *counted) add(r *structure.Residue) {
	if r.Kind == structure.Protein && !r.Cap() {
		c.residues++
		if r.Backbone() {
			c.backbone++
		}
		if r.SideChain() {
			c.sidechains++
		}
	}
	for _, a := range r.Atoms {
		if hydrogen(a) || r.Kind == structure.Water {
			continue
		}
		c.heavy++
		if !a.Hetero && a.Alternate == "" {
			c.crowd.add(a.Position)
		}
	}
}

func (c *counted) check(m *structure.Model, want Want) error {
	for fact, n := range map[string]int{
		"residues": c.residues, "chains": len(m.Chains), "atoms": m.Atoms, "heavy": c.heavy, "backbone": c.backbone, "sidechains": c.sidechains,
	} {
		want.found.Facts[fact] = float64(n)
	}
	want.found.Summary = m.Summary()
	switch {
	case m.Atoms == 0:
		return mistakef("has no atoms: it is neither a PDB nor an mmCIF file, or it has no coordinates")
	case want.Kind == ProteinStructure && c.residues == 0:
		return mistakef("has %d atoms but no protein", m.Atoms)
	case want.Kind == ProteinStructure && c.heavy == 0:
		return mistakef("has only hydrogen atoms")
	case c.crowd.tooClose():
		return mistakef("has %d atoms within %g Å of another one: molecules overlap or coordinates are missing", c.crowd.close, nearest)
	}
	return errors.Join(
		within(c.residues, want.MinResidues, want.MaxResidues, "residue"),
		within(m.Atoms, 0, want.MaxAtoms, "atom"),
		want.fitsPDB(m),
	)
}

// fitsPDB returns an error if none of the PDB files that the program accepts can
// represent the structure.
func (w Want) fitsPDB(m *structure.Model) error {
	var first error
	for _, leave := range w.PDB {
		err := m.FitsPDB(leave)
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	if first == nil {
		return nil
	}
	return Mistake(first.Error())
}

// checkStructure reads the first model of a PDB or mmCIF file.
func checkStructure(text *lines, want Want) error {
	r := structure.NewReader()
	for line, ok := text.next(); ok && !r.Ended; line, ok = text.next() {
		if err := text.plain(line); err != nil {
			return err
		}
		if err := r.Line(line, text.number); err != nil {
			return Mistake(err.Error())
		}
		if r.Atoms() > maxAtoms {
			return mistakef("has more than %d atoms, which is too many to check", maxAtoms)
		}
	}
	if err := text.err(); err != nil {
		return err
	}
	m, err := r.Model()
	if err != nil {
		return Mistake(err.Error())
	}
	c := counted{crowd: clashDetector{at: map[[3]int32][3]float64{}}}
	for _, r := range m.Residues {
		c.add(r)
	}
	return c.check(m, want)
}
