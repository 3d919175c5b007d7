package structure

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Selection says which atoms WritePDB leaves out.
type Selection struct {
	Hydrogens bool
	Hetero    bool // ligands, water and all other HETATM; modified amino acids of chains become standard ones
	Modified  bool // what modified amino acids of chains have in addition, so that they become standard ones
}

// Options are the arguments of `molrun engine pdb` that leave something out.
var Options = []string{"no-hetero", "standard", "no-hydrogens"}

// Option returns what an option sets, nil if there is none of that name.
func (s *Selection) Option(name string) *bool {
	switch name {
	case "no-hetero":
		return &s.Hetero
	case "standard":
		return &s.Modified
	case "no-hydrogens":
		return &s.Hydrogens
	}
	return nil
}

// The most that the columns of a PDB file can number.
const (
	mostAtoms    = 99_999
	leastResidue = -999
	mostResidues = 9_999
	chainLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)

// Written is what WritePDB has done.
type Written struct {
	Source   string            // what it holds
	Atoms    int               // written
	Chains   map[string]string // new names of chains, by their old ones, if they differ
	Modified []string          // residues of chains that are written as standard ones, such as "A:MSE1 as MET"
	Again    bool              // numbers of waters begin again behind 9999
	Unusual  []string          // other residues of chains that are HETATM, as programs may leave them out
}

// WritePDB writes the first model of a PDB or mmCIF file as a PDB file that most programs
// read: with HEADER, one place for each atom, a TER record after each polymer, and chains of
// one letter. The error says what is wrong with the source, or what a PDB file can't hold.
func WritePDB(source io.Reader, target io.Writer, leave Selection) (*Written, error) {
	m, err := Read(source)
	if err != nil {
		return nil, err
	}
	w, all, names, err := m.forPDB(leave)
	if err != nil {
		return nil, err
	}
	w.Source = m.Summary()
	out := bufio.NewWriter(target)
	fmt.Fprintln(out, "HEADER    MOLECULE")
	last, serial := lastOfPolymers(all), 0
	for k, r := range all {
		from := r.ChainID()
		if to := names[from]; to != from {
			w.Chains[from] = to
		}
		if r.Number > mostResidues { // a water
			r.Number, w.Again = r.Number%(mostResidues+1), true
		}
		for _, a := range r.Atoms {
			serial++
			a.writePDB(out, serial, r, names[from])
		}
		if last[from] == k {
			fmt.Fprintln(out, "TER")
		}
	}
	fmt.Fprintln(out, "END")
	return w, out.Flush()
}

// FitsPDB returns the error with which WritePDB rejects the model.
func (m *Model) FitsPDB(leave Selection) error {
	_, _, _, err := m.forPDB(leave)
	return err
}

// forPDB returns the residues that are written, and names of their chains. The error says what
// a PDB file can't hold.
func (m *Model) forPDB(leave Selection) (w *Written, all []*Residue, names map[string]string, err error) {
	w = &Written{Chains: map[string]string{}}
	if all, err = w.residues(m, leave); err != nil {
		return nil, nil, nil, err
	}
	switch {
	case len(all) == 0:
		return nil, nil, nil, fmt.Errorf("has no atoms of that kind")
	case w.Atoms > mostAtoms:
		return nil, nil, nil, fmt.Errorf("has %d atoms, and a PDB file holds at most %d: upload fewer chains", w.Atoms, mostAtoms)
	}
	for _, r := range all {
		if err := r.fitsPDB(); err != nil {
			return nil, nil, nil, err
		}
	}
	names, err = chainNames(all)
	return w, all, names, err
}

// fitsPDB says which columns of a PDB file are too narrow for the residue. Waters beyond the
// last number are numbered again.
func (r *Residue) fitsPDB() error {
	switch {
	case r.Number < leastResidue || r.Number > mostResidues && r.Kind != Water:
		return fmt.Errorf("has the residue %s, and a PDB file holds numbers from %d to %d: renumber the residues, or upload fewer of them", r, leastResidue, mostResidues)
	case len(r.Name) > 3:
		return fmt.Errorf("has the residue %s, and a PDB file holds names of residues with at most 3 letters: rename %s", r, r.Name)
	case len(r.Insertion) > 1:
		return fmt.Errorf("has the residue %s, and a PDB file holds insertion codes of one letter: renumber the residues", r)
	}
	for _, a := range r.Atoms {
		if len(a.Name) > 4 {
			return fmt.Errorf("has the atom %s in %s, and a PDB file holds names of atoms with at most 4 letters: rename it", a.Name, r)
		}
		for _, v := range a.Place {
			if v <= -999.9995 || v >= 9999.9995 {
				return fmt.Errorf("has the coordinate %.3f of the atom %s in %s, and a PDB file holds those from -999.999 to 9999.999: move the structure to the origin", v, a.Name, r)
			}
		}
	}
	return nil
}

// residues returns those that are written, with the atoms that are.
func (w *Written) residues(m *Model, leave Selection) (all []*Residue, err error) {
	var holes []string
	for k, r := range m.Residues {
		written := *r
		if leave.Hetero || leave.Modified {
			if kept := written.standardize(m, k, w, &holes); leave.Hetero && !kept {
				continue
			}
		}
		written.Atoms = slices.DeleteFunc(written.Places(), func(a *Atom) bool {
			return leave.Hydrogens && a.Hydrogen() || leave.Hetero && a.Hetero
		})
		if w.Atoms += len(written.Atoms); len(written.Atoms) > 0 {
			all = append(all, &written)
		}
	}
	if !leave.Hetero {
		w.Unusual = holes
		return all, nil
	}
	if len(holes) > 0 {
		more := ""
		if n := len(holes) - 10; n > 0 {
			holes, more = holes[:10], fmt.Sprintf(" and %d more", n)
		}
		return nil, fmt.Errorf("has residues in its chains that are HETATM, without which the chains have holes: %s%s; replace them by standard residues, as ATOM", strings.Join(holes, ", "), more)
	}
	return all, nil
}

// standardize makes a modified residue of a polymer a standard one. It reports whether
// something of the residue is written, and adds it to the holes if it ought to be and can't.
func (r *Residue) standardize(m *Model, k int, w *Written, holes *[]string) bool {
	polymer := r.polymer()
	if polymer && r.Hetero && (r.Standard() || slices.Contains(nucleos, r.Name)) {
		r.Atoms = asATOM(r.Atoms)
		return true
	}
	if standard := r.parent(); polymer && standard != nil {
		w.Modified = append(w.Modified, fmt.Sprintf("%s as %s", r, standard.Name))
		r.Name, r.Atoms = standard.Name, standard.Atoms
		return true
	}
	within := k > 0 && k+1 < len(m.Residues) && m.joined(k) && m.joined(k+1)
	if r.Hetero && polymer && (r.Backbone() || within) {
		*holes = append(*holes, r.String())
	}
	return !r.Hetero
}

// parent returns the standard residue that a modified one is made from, with the atoms that
// both have. It returns nil where some atoms of the standard one have become others.
func (r *Residue) parent() *Residue {
	name := parents[r.Name]
	if name == "" {
		return nil
	}
	standard := &Residue{Name: name}
	var hydrogens []*Atom
	other := false
	for _, a := range asATOM(r.Atoms) {
		if a.Name == "SE" {
			a.Label = &Label{map[string]string{"MET": "SD", "CYS": "SG"}[name], a.Alternate, "S"}
		}
		switch {
		case a.Hydrogen():
			hydrogens = append(hydrogens, a)
		case slices.Contains(backboneAtoms, a.Name) || slices.Contains(strings.Fields(heavy[name]), a.Name):
			standard.Atoms = append(standard.Atoms, a)
		default:
			other = true
		}
	}
	if !other { // the hydrogens are those of the standard one
		standard.Atoms = append(standard.Atoms, hydrogens...)
		return standard
	}
	for atom := range strings.FieldsSeq(heavy[name]) {
		if standard.Atom(atom) == nil {
			return nil
		}
	}
	return standard
}

// asATOM returns copies of atoms, as ATOM records.
func asATOM(atoms []*Atom) []*Atom {
	all := make([]*Atom, len(atoms))
	for k, a := range atoms {
		own := *a
		own.Hetero = false
		all[k] = &own
	}
	return all
}

var backboneAtoms = []string{"N", "CA", "C", "O", "OXT"}

// lastOfPolymers returns the place of the last residue of each chain that is part of a polymer.
func lastOfPolymers(all []*Residue) map[string]int {
	last := map[string]int{}
	for k, r := range all {
		if r.polymer() {
			last[r.ChainID()] = k
		}
	}
	return last
}

// chainNames gives a letter to each chain that has a longer name, or none beside others
// without one.
func chainNames(all []*Residue) (map[string]string, error) {
	names := map[string]string{}
	var long []string
	several := slices.ContainsFunc(all, func(r *Residue) bool { return r.Chain == "" && r.Part > 0 })
	for _, r := range all {
		id := r.ChainID()
		switch _, known := names[id]; {
		case known || slices.Contains(long, id):
		case len(id) == 1, id == "" && !several:
			names[id] = id
		default:
			long = append(long, id)
		}
	}
	free := chainLetters
	for _, taken := range names {
		if taken != "" {
			free = strings.ReplaceAll(free, taken, "")
		}
	}
	if len(long) > len(free) {
		return nil, fmt.Errorf("has %d chains, and a PDB file holds at most %d: upload fewer", len(names)+len(long), len(chainLetters))
	}
	for k, name := range long {
		names[name] = free[k : k+1]
	}
	return names, nil
}

// writePDB writes an atom that fits.
func (a *Atom) writePDB(out *bufio.Writer, serial int, of *Residue, chain string) {
	record := "ATOM"
	if a.Hetero {
		record = "HETATM"
	}
	name := a.Name
	if len(a.Element) < 2 && len(name) < 4 { // elements of one letter begin in the second column
		name = " " + name
	}
	fmt.Fprintf(out, "%-6s%5d %-4s %3s %1s%4d%-1s   %8.3f%8.3f%8.3f%6.2f%6.2f          %2s\n",
		record, serial, name, of.Name, chain, of.Number, of.Insertion, a.Place[0], a.Place[1], a.Place[2], min(a.Occupancy, 1), min(max(a.B, -99.99), 999.99), a.Element)
}
