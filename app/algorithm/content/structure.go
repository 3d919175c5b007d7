package content

import (
	"errors"
	"slices"
	"strings"

	"molrun/app/base/structure"
)

// residues are the names of amino acids in structures: the standard ones, what programs
// call their states of protonation, and those that are often modified.
var residues = map[string]bool{}

func init() {
	for name := range strings.FieldsSeq(`ALA ARG ASN ASP CYS GLN GLU GLY HIS ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL
		SEC PYL ASX GLX UNK HID HIE HIP HSD HSE HSP CYX CYM ASH GLH LYN ARN TYM MSE SEP TPO PTR CSO HYP MLY M3L KCX`) {
		residues[name] = true
	}
}

func hydrogen(a *structure.Atom) bool {
	if a.Element != "" {
		return a.Element == "H" || a.Element == "D"
	}
	return !a.Hetero && strings.HasPrefix(strings.TrimLeft(a.Name, "0123456789"), "H")
}

func water(residue string) bool { return residue == "HOH" || residue == "DOD" || residue == "WAT" }

// counted is what a structure has.
type counted struct {
	atoms, heavy int // heavy: neither hydrogen nor water
	residues     int
	last         residue // the amino acid that was counted last
	has          int     // which atoms of the backbone it has, a bit for each
	backbone     int     // residues that have them all
	chains       map[string]bool
	crowd        crowd
}

// residue is what the atoms of one have in common.
type residue struct {
	name, chain, insertion string
	number                 int
}

func (c *counted) add(a *structure.Atom) {
	c.atoms++
	if !c.chains[a.Chain] {
		c.chains[a.Chain] = true
	}
	if !hydrogen(a) && !water(a.Residue) {
		c.heavy++
		if !a.Hetero && a.Alternate == "" {
			c.crowd.add(a.Place)
		}
	}
	if r := (residue{a.Residue, a.Chain, a.Insertion, a.Number}); r != c.last {
		if !residues[r.name] {
			return
		}
		c.residues++
		c.last, c.has = r, 0
	}
	if bit := slices.Index(backbone, a.Name); bit >= 0 && c.has != 7 {
		if c.has |= 1 << bit; c.has == 7 {
			c.backbone++
		}
	}
}

var backbone = []string{"N", "CA", "C"}

func (c *counted) check(want Want) error {
	for fact, n := range map[string]int{"residues": c.residues, "chains": len(c.chains), "atoms": c.atoms, "heavy": c.heavy, "backbone": c.backbone} {
		want.found[fact] = float64(n)
	}
	switch {
	case c.atoms == 0:
		return wrong("has no atoms: it is neither a PDB nor an mmCIF file, or it has no coordinates")
	case want.Kind == ProteinStructure && c.residues == 0:
		return wrong("has no amino acid among its %d atoms", c.atoms)
	case want.Kind == ProteinStructure && c.heavy == 0:
		return wrong("has no atoms but hydrogens")
	case c.crowd.tooClose():
		return wrong("has %d atoms within %g Å of another one: molecules lie on top of each other, or places of atoms are missing", c.crowd.close, nearest)
	}
	return errors.Join(
		within(c.residues, want.MinResidues, want.MaxResidues, "residue"),
		within(c.atoms, 0, want.MaxAtoms, "atom"),
	)
}

// checkStructure reads the first model of a PDB or mmCIF file.
func checkStructure(text *lines, want Want) error {
	c := counted{chains: map[string]bool{}, crowd: crowd{at: map[[3]int32][3]float64{}}}
	r := structure.NewReader(c.add)
	for line, ok := text.next(); ok; line, ok = text.next() {
		if err := text.plain(line); err != nil {
			return err
		}
		if err := r.Line(line, text.number); err != nil {
			return Mistake(err.Error())
		}
		if r.Ended {
			break
		}
	}
	if err := text.err(); err != nil {
		return err
	}
	if err := r.End(); err != nil {
		return Mistake(err.Error())
	}
	return c.check(want)
}
