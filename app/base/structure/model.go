package structure

import (
	"fmt"
	"slices"
)

// Kind is what a residue is.
type Kind string

// The kinds of residues. A polymer is what is bound to others of its kind, so that an amino
// acid by itself is a ligand.
const (
	Protein Kind = "protein"
	Nucleic Kind = "nucleic"
	Water   Kind = "water"
	Ligand  Kind = "ligand" // or ion
)

// Model is the first model of a file.
type Model struct {
	Models   int // of the file
	Atoms    int // all places of each atom are counted
	Residues []*Residue
	Chains   []*Chain // polymers
}

// Residue is what has one number and name in one chain.
type Residue struct {
	Name, Chain, Insertion string
	Number                 int
	Part                   int // distinguishes chains of one name, from 0
	Sequence               int // number in the sequence, from 1; 0 if the file does not say
	Kind                   Kind
	Atoms                  []*Atom // at all their places
	Hetero                 bool    // all atoms are HETATM

	next   *Residue // another one of the same number
	entity string   // in an mmCIF file
	member member   // of a polymer
	starts bool     // a TER record stands before it
	ends   bool     // a TER record stands behind it
	behind bool     // the polymer of its chain has ended before it
}

// member is what the file says about being part of a polymer.
type member int8

const (
	unknown member = iota
	inside
	outside
)

// String is the residue as people write it, such as A:LYS13.
func (r *Residue) String() string { return fmt.Sprintf("%s:%s%s", r.ChainID(), r.Name, r.Label()) }

// ChainID is the name of its chain, with #2 for the second one of that name, or of none.
func (r *Residue) ChainID() string { return chainID(r.Chain, r.Part) }

func chainID(name string, part int) string {
	if part == 0 {
		return name
	}
	return fmt.Sprintf("%s#%d", name, part+1)
}

// Label is its number in the chain, with the insertion code.
func (r *Residue) Label() string { return fmt.Sprintf("%d%s", r.Number, r.Insertion) }

// Atom returns the first place of an atom, nil if there is none of that name.
func (r *Residue) Atom(name string) *Atom {
	for _, a := range r.Atoms {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// Letter is the one-letter code, X for a residue that is not standard.
func (r *Residue) Letter() string {
	if letter := letters[r.Name]; letter != "" {
		return letter
	}
	return "X"
}

// Places returns each atom at its most occupied place.
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

// isWater reports whether a name is that of water.
func isWater(name string) bool {
	switch name {
	case "HOH", "WAT", "DOD", "H2O", "SOL", "TIP", "TIP3", "TP3", "SPC":
		return true
	}
	return false
}

// Standard reports whether it is a standard amino acid.
func (r *Residue) Standard() bool { return letters[r.Name] != "" }

// Cap reports whether it closes the end of a chain, and is no amino acid.
func (r *Residue) Cap() bool { return slices.Contains(caps, r.Name) }

// Backbone reports whether the residue has the backbone atoms of an amino acid.
func (r *Residue) Backbone() bool {
	return r.Atom("N") != nil && r.Atom("CA") != nil && r.Atom("C") != nil
}

// polymer reports whether it is part of a chain.
func (r *Residue) polymer() bool { return r.Kind == Protein || r.Kind == Nucleic }

// SideChain reports whether an amino acid has an atom behind its alpha carbon, or needs none.
func (r *Residue) SideChain() bool {
	return r.Name == "GLY" || slices.ContainsFunc(r.Atoms, func(a *Atom) bool {
		return !a.Hydrogen() && !slices.Contains(backboneAtoms, a.Name)
	})
}

// Chain is the residues of one kind in one chain, in the order of the file.
type Chain struct {
	Name     string
	Part     int
	Kind     Kind
	Residues []*Residue
}

// Alternates reports whether an atom is at several places.
func (r *Residue) Alternates() bool {
	return slices.ContainsFunc(r.Atoms, func(a *Atom) bool { return a.Alternate != "" })
}

// ID is the name of the chain, as ChainID of its residues.
func (c *Chain) ID() string { return chainID(c.Name, c.Part) }
