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
	Hydrogens bool // leave out
	Hetero    bool // leave out ligands, water and whatever else is HETATM, but for methionines with selenium
}

// The most that the columns of a PDB file can number.
const (
	mostAtoms    = 99_999
	mostResidues = 9_999
	chainLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)

// Written is what WritePDB has done.
type Written struct {
	Models      int               // in the source, of which the first counts
	Atoms       int               // written
	Chains      map[string]string // new names of chains, by their old ones, if they differ
	Methionines []string          // that have selenium in the source, and are written with sulfur
}

// WritePDB writes the first model of a PDB or mmCIF file as a PDB file that most programs
// read: with HEADER, one place for each atom, a TER record after each chain, and chains of
// one letter. The error says what is wrong with the source, or what a PDB file can't hold.
func WritePDB(source io.Reader, target io.Writer, leave Selection) (*Written, error) {
	w := &Written{Chains: map[string]string{}}
	all, err := w.read(source, leave)
	if err != nil {
		return nil, err
	}
	all = places(all)
	w.Atoms = len(all)
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("has no atoms of that kind")
	case len(all) > mostAtoms:
		return nil, fmt.Errorf("has %d atoms, and a PDB file holds at most %d", len(all), mostAtoms)
	}
	names, err := chainNames(all)
	if err != nil {
		return nil, err
	}
	out := bufio.NewWriter(target)
	fmt.Fprintln(out, "HEADER    MOLECULE")
	for k, a := range all {
		if a.Number > mostResidues || a.Number < -999 || len(a.Residue) > 3 || len(a.Name) > 4 || len(a.Insertion) > 1 {
			return nil, fmt.Errorf("has the residue %s %d with the atom %s, which a PDB file can't hold", a.Residue, a.Number, a.Name)
		}
		if k > 0 && all[k-1].Chain != a.Chain && !all[k-1].Hetero {
			fmt.Fprintln(out, "TER")
		}
		if to := names[a.Chain]; to != a.Chain {
			w.Chains[a.Chain] = to
		}
		a.write(out, k+1, names[a.Chain])
	}
	fmt.Fprintln(out, "TER\nEND")
	return w, out.Flush()
}

// read reads the atoms that are not left out.
func (w *Written) read(source io.Reader, leave Selection) (all []*Atom, err error) {
	w.Models, err = Read(source, func(a *Atom) {
		if !leave.Hydrogens || a.Element != "H" && a.Element != "D" {
			all = append(all, a)
		}
	})
	if err != nil || !leave.Hetero {
		return all, err
	}
	w.Methionines, err = writeMethionines(all)
	return slices.DeleteFunc(all, func(a *Atom) bool { return a.Hetero }), err
}

// places takes each atom at its most occupied place.
func places(atoms []*Atom) (all []*Atom) {
	type key struct {
		chain, insertion, name string
		number                 int
	}
	at := map[key]int{}
	for _, a := range atoms {
		if a.Alternate == "" {
			all = append(all, a)
			continue
		}
		k := key{a.Chain, a.Insertion, a.Name, a.Number}
		n, ok := at[k]
		switch {
		case !ok:
			at[k] = len(all)
			all = append(all, a)
		case a.Occupancy > all[n].Occupancy && a.Residue == all[n].Residue: // of different residues the first
			all[n] = a
		}
	}
	return all
}

// chainNames gives a letter to each chain that has a longer name.
func chainNames(all []*Atom) (map[string]string, error) {
	names := map[string]string{}
	var long []string
	for _, a := range all {
		switch _, known := names[a.Chain]; {
		case known || slices.Contains(long, a.Chain):
		case len(a.Chain) <= 1:
			names[a.Chain] = a.Chain
		default:
			long = append(long, a.Chain)
		}
	}
	free := chainLetters
	for _, taken := range names {
		free = strings.ReplaceAll(free, taken, "")
	}
	if len(long) > len(free) {
		return nil, fmt.Errorf("has %d chains, and a PDB file holds at most %d", len(names)+len(long), len(chainLetters))
	}
	for k, name := range long {
		names[name] = free[k : k+1]
	}
	return names, nil
}

func (a *Atom) write(out io.Writer, serial int, chain string) {
	record := "ATOM"
	if a.Hetero {
		record = "HETATM"
	}
	name := a.Name
	if len(a.Element) < 2 && len(name) < 4 { // elements of one letter begin in the second column
		name = " " + name
	}
	fmt.Fprintf(out, "%-6s%5d %-4s %3s %1s%4d%-1s   %8.3f%8.3f%8.3f%6.2f%6.2f          %2s\n",
		record, serial, name, a.Residue, chain, a.Number, a.Insertion, a.Place[0], a.Place[1], a.Place[2], min(a.Occupancy, 1), min(max(a.B, -99.99), 999.99), a.Element)
}
