package structure

import (
	"fmt"
	"slices"
)

// Kind is the kind of a residue.
type Kind string

// The kinds of residues. Only a residue bound to others of its kind is part of a polymer,
// so a single amino acid is a ligand.
const (
	Protein Kind = "protein"
	Nucleic Kind = "nucleic"
	Water   Kind = "water"
	Ligand  Kind = "ligand" // or an ion
)

// Model is the first model of a file.
type Model struct {
	Models   int // number of models in the file
	Atoms    int // including every alternate location
	Residues []*Residue
	Chains   []*Chain // the polymers
}

// Residue is the group of atoms with one residue number and name in one chain.
type Residue struct {
	Name, Chain, Insertion string
	Number                 int
	Part                   int // distinguishes chains with the same name, from 0
	Sequence               int // number in the sequence, from 1; 0 if not in the file
	Kind                   Kind
	Atoms                  []*Atom // including alternate locations
	Hetero                 bool    // all atoms are HETATM

	next         *Residue // another residue with the same number
	entity       string   // entity ID in an mmCIF file
	member       member   // whether it is part of a polymer
	starts       bool     // it follows a TER record
	ends         bool     // a TER record follows it
	afterPolymer bool     // the polymer of its chain ended before it
}

// member is what the file says about membership in a polymer.
type member int8

const (
	unknown member = iota
	inside
	outside
)

// String returns the residue in the usual notation, such as A:LYS13.
func (r *Residue) String() string { return fmt.Sprintf("%s:%s%s", r.ChainID(), r.Name, r.Label()) }

// ChainID returns the name of the residue's chain, followed by #2 for the second chain
// with that name or without one.
func (r *Residue) ChainID() string { return chainID(r.Chain, r.Part) }

func chainID(name string, part int) string {
	if part == 0 {
		return name
	}
	return fmt.Sprintf("%s#%d", name, part+1)
}

// Label returns the residue's number in the chain, with the insertion code.
func (r *Residue) Label() string { return fmt.Sprintf("%d%s", r.Number, r.Insertion) }

// Atom returns the first location of an atom, or nil if there is none of that name.
func (r *Residue) Atom(name string) *Atom {
	for _, a := range r.Atoms {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// Letter returns the one-letter code, or X for a nonstandard residue.
func (r *Residue) Letter() string {
	if letter := letters[r.Name]; letter != "" {
		return letter
	}
	return "X"
}

// Places returns each atom at its location with the highest occupancy.
func (r *Residue) Places() (all []*Atom) {
	for _, a := range r.Atoms {
		at := -1
		if a.Alternate != "" {
			at = slices.IndexFunc(all, func(b *Atom) bool { return b.Name == a.Name })
		}
		switch {
		case at < 0:
			all = append(all, a)
		case a.Occupancy > all[at].Occupancy:
			all[at] = a
		}
	}
	return all
}

// isWater reports whether name is a water residue name.
func isWater(name string) bool {
	switch name {
	case "HOH", "WAT", "DOD", "H2O", "SOL", "TIP", "TIP3", "TP3", "SPC":
		return true
	}
	return false
}

// Standard reports whether the residue is a standard amino acid.
func (r *Residue) Standard() bool { return letters[r.Name] != "" }

// Cap reports whether the residue caps the end of a chain and is not an amino acid.
func (r *Residue) Cap() bool { return slices.Contains(caps, r.Name) }

// Backbone reports whether the residue has the backbone atoms of an amino acid.
func (r *Residue) Backbone() bool {
	return r.Atom("N") != nil && r.Atom("CA") != nil && r.Atom("C") != nil
}

// polymer reports whether the residue is part of a polymer.
func (r *Residue) polymer() bool { return r.Kind == Protein || r.Kind == Nucleic }

// SideChain reports whether an amino acid has a heavy atom in its side chain or is
// glycine.
func (r *Residue) SideChain() bool {
	return r.Name == "GLY" || slices.ContainsFunc(r.Atoms, func(a *Atom) bool {
		return !a.Hydrogen() && !slices.Contains(backboneAtoms, a.Name)
	})
}

// Chain holds the residues of one kind in one chain, in file order.
type Chain struct {
	Name     string
	Part     int
	Kind     Kind
	Residues []*Residue
}

// Alternates reports whether the residue has an atom with alternate locations.
func (r *Residue) Alternates() bool {
	return slices.ContainsFunc(r.Atoms, func(a *Atom) bool { return a.Alternate != "" })
}

// ID returns the name of the chain, like the ChainID of its residues.
func (c *Chain) ID() string { return chainID(c.Name, c.Part) }
