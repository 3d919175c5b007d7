package structure

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Selection says which atoms WritePDB omits.
type Selection struct {
	Hydrogens bool
	Hetero    bool // ligands, water and all other HETATM; modified amino acids of chains become standard ones
	Modified  bool // extra atoms of modified amino acids of chains, so that they become standard ones
}

// Options lists the options of `molrun engine pdb` that omit atoms.
var Options = []string{"no-hetero", "standard", "no-hydrogens"}

// Option returns a pointer to the field that an option sets, or nil if there is no such
// option.
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

// The limits of the number columns of a PDB file.
const (
	mostAtoms    = 99_999
	leastResidue = -999
	mostResidues = 9_999
	chainLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)

// Written describes what WritePDB has written.
type Written struct {
	Source   string            // summary of the source
	Atoms    int               // written
	Chains   map[string]string // new names of chains by old name, if they differ
	Modified []string          // residues of chains written as standard ones, such as "A:MSE1 as MET"
	Again    bool              // the numbers of waters restart after 9999
	Unusual  []string          // other HETATM residues of chains, which programs might ignore
}

// WritePDB writes the first model of a PDB or mmCIF file as a PDB file that most programs
// can read: with HEADER, one location per atom, a TER record after each polymer, and
// one-letter chain names. The error says what is wrong with the source, or what does not
// fit a PDB file.
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
		if r.Number > mostResidues { // only waters have such numbers
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

// forPDB returns the residues to write and the names of their chains. The error says what
// does not fit a PDB file.
func (m *Model) forPDB(leave Selection) (w *Written, all []*Residue, names map[string]string, err error) {
	w = &Written{Chains: map[string]string{}}
	if all, err = w.residues(m, leave); err != nil {
		return nil, nil, nil, err
	}
	switch {
	case len(all) == 0:
		return nil, nil, nil, fmt.Errorf("has no atoms to write")
	case w.Atoms > mostAtoms:
		return nil, nil, nil, fmt.Errorf("has %d atoms, but a PDB file holds at most %d: upload fewer chains", w.Atoms, mostAtoms)
	}
	for _, r := range all {
		if err := r.fitsPDB(); err != nil {
			return nil, nil, nil, err
		}
	}
	names, err = chainNames(all)
	return w, all, names, err
}

// fitsPDB returns an error if the residue exceeds the columns of a PDB file. Waters after
// the last number are renumbered.
func (r *Residue) fitsPDB() error {
	switch {
	case r.Number < leastResidue || r.Number > mostResidues && r.Kind != Water:
		return fmt.Errorf("has the residue %s, but residue numbers in a PDB file must be from %d to %d: renumber the residues, or upload fewer", r, leastResidue, mostResidues)
	case len(r.Name) > 3:
		return fmt.Errorf("has the residue %s, but residue names in a PDB file have at most 3 letters: rename %s", r, r.Name)
	case len(r.Insertion) > 1:
		return fmt.Errorf("has the residue %s, but insertion codes in a PDB file have one letter: renumber the residues", r)
	}
	for _, a := range r.Atoms {
		if len(a.Name) > 4 {
			return fmt.Errorf("has the atom %s in %s, but atom names in a PDB file have at most 4 letters: rename it", a.Name, r)
		}
		for _, v := range a.Position {
			if v <= -999.9995 || v >= 9999.9995 {
				return fmt.Errorf("has the coordinate %.3f of the atom %s in %s, but coordinates in a PDB file must be from -999.999 to 9999.999: move the structure to the origin", v, a.Name, r)
			}
		}
	}
	return nil
}

// residues returns the residues to write, with only the atoms to write.
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
		return nil, fmt.Errorf("has HETATM residues in its chains, and omitting them would leave gaps: %s%s; replace them by standard residues with ATOM records", strings.Join(holes, ", "), more)
	}
	return all, nil
}

// standardize turns a modified residue of a polymer into a standard one. It reports
// whether any of the residue's atoms are written, and adds the residue to holes if it
// should be written but can't be.
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

// parent returns the standard residue from which a modified one is derived, with the
// atoms that both have. It returns nil if some atoms of the standard residue were
// replaced.
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
	if !other { // the hydrogens are those of the standard residue
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

// lastOfPolymers returns the index of the last polymer residue of each chain.
func lastOfPolymers(all []*Residue) map[string]int {
	last := map[string]int{}
	for k, r := range all {
		if r.polymer() {
			last[r.ChainID()] = k
		}
	}
	return last
}

// chainNames assigns a letter to each chain that has a longer name, and to chains without
// a name if there are several.
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
		return nil, fmt.Errorf("has %d chains, but a PDB file holds at most %d: upload fewer", len(names)+len(long), len(chainLetters))
	}
	for k, name := range long {
		names[name] = free[k : k+1]
	}
	return names, nil
}

// writePDB writes an atom record, which must fit.
func (a *Atom) writePDB(out *bufio.Writer, serial int, of *Residue, chain string) {
	record := "ATOM"
	if a.Hetero {
		record = "HETATM"
	}
	name := a.Name
	if len(a.Element) < 2 && len(name) < 4 { // one-letter elements start in the second column
		name = " " + name
	}
	fmt.Fprintf(out, "%-6s%5d %-4s %3s %1s%4d%-1s   %8.3f%8.3f%8.3f%6.2f%6.2f          %2s\n",
		record, serial, name, of.Name, chain, of.Number, of.Insertion, a.Position[0], a.Position[1], a.Position[2], min(a.Occupancy, 1), min(max(a.B, -99.99), 999.99), a.Element)
}
