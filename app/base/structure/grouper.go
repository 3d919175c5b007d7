package structure

import (
	"slices"
	"strings"
)

// grouper groups atoms into residues.
type grouper struct {
	model  *Model
	types  map[string]string // by entity
	last   *Residue
	cut    bool // a TER record follows the last atom
	at     map[place]*Residue
	lines  map[string]*strand // by chain name
	texts  map[string]string  // interned strings
	labels map[Label]*Label   // interned labels
	block  []Atom             // preallocated atoms
}

// place identifies the residues that share a number.
type place struct {
	chain, insertion string
	part, number     int32
}

// strand is the most recent segment of a chain that has been read.
type strand struct {
	part   int
	ended  bool // it was followed by a TER record
	number int  // of the last residue with an ATOM record
}

// entity records the type of an entity.
func (g *grouper) entity(id, kind string) {
	if g.types == nil {
		g.types = map[string]string{}
	}
	g.types[id] = kind
}

// ter records the end of a polymer. Some programs also write TER after ligands and water.
func (g *grouper) ter() {
	if g.last != nil {
		g.cut, g.last.ends = true, true
		g.lines[g.last.Chain].ended = true
	}
}

// blockSize is how many atoms are allocated at once.
const blockSize = 4096

// addAtom adds an atom. In an mmCIF file, it has an entity and the number of its residue
// in the sequence: -1 for none, 0 if it is unknown.
func (g *grouper) addAtom(a *row, entity string, sequence int) {
	g.model.Atoms++
	r := g.last
	if r == nil || g.cut || r.id() != a.residue || r.startsNewResidue(&a.Atom) {
		r = g.residue(a)
		if r.entity, r.Sequence = g.text(entity), max(0, sequence); sequence < 0 {
			r.member = outside
		}
	}
	if len(g.block) == cap(g.block) {
		g.block = make([]Atom, 0, blockSize)
	}
	g.block = append(g.block, a.Atom)
	own := &g.block[len(g.block)-1]
	own.Label = g.label(a.Label)
	g.last, g.cut = r, false
	r.Hetero = r.Hetero && a.Hetero
	r.Atoms = append(r.Atoms, own)
}

// text returns an interned copy of s that does not retain the line of the file.
func (g *grouper) text(s string) string {
	if s == "" {
		return ""
	}
	own, ok := g.texts[s]
	if !ok {
		own = strings.Clone(s)
		g.texts[own] = own
	}
	return own
}

// label returns an interned copy of l.
func (g *grouper) label(l *Label) *Label {
	own := g.labels[*l]
	if own == nil {
		own = &Label{g.text(l.Name), g.text(l.Alternate), g.text(l.Element)}
		g.labels[*own] = own
	}
	return own
}

func (r *Residue) id() residueID { return residueID{r.Name, r.Chain, r.Insertion, r.Number} }

// startsNewResidue reports whether an atom that directly follows a residue of the same
// name and number starts another residue with that number. Such an atom repeats the first
// atom of the residue.
func (r *Residue) startsNewResidue(a *Atom) bool {
	switch first := r.Atoms[0]; {
	case isWater(r.Name) || r.Name == a.Name: // a water or an ion
		return r.full(a)
	case first.Name != a.Name || first.Alternate != a.Alternate:
		return false
	}
	return r.distinct() && !slices.ContainsFunc(r.Atoms, func(b *Atom) bool { return Distance(a, b) <= longestBond })
}

// distinct reports whether atom names are unique, rather than bare elements that repeat.
func (r *Residue) distinct() bool {
	for k, a := range r.Atoms {
		if slices.ContainsFunc(r.Atoms[:k], func(b *Atom) bool { return b.Name == a.Name && b.Alternate == a.Alternate }) {
			return false
		}
	}
	return true
}

// residue returns the residue of an atom that does not belong to the last one.
func (g *grouper) residue(a *row) *Residue {
	id := a.residue
	s := g.lines[id.Chain]
	if s == nil {
		s = &strand{number: id.Number}
		g.lines[g.text(id.Chain)] = s
	}
	at := place{id.Chain, id.Insertion, int32(s.part), int32(id.Number)}
	var first *Residue // with the same number
	again := false     // this residue has already occurred in the file
	for r := g.at[at]; r != nil; r = r.next {
		switch first = r; {
		case r.Name != id.Name:
		case r.continues(&a.Atom):
			return r
		default:
			again = true
		}
		if isWater(id.Name) {
			break
		}
	}
	r := &Residue{Name: g.text(id.Name), Chain: g.text(id.Chain), Insertion: g.text(id.Insertion), Number: id.Number, Hetero: true, starts: g.cut}
	switch {
	case a.Hetero || isWater(id.Name):
		r.afterPolymer = s.ended
	case again || s.ended && id.Number < s.number || id.Chain == "" && (s.ended || id.Number < s.number):
		s.part, at.part, first = s.part+1, int32(s.part+1), nil
		fallthrough
	default:
		s.ended, s.number = false, id.Number
	}
	r.Part = s.part
	at.chain, at.insertion = r.Chain, r.Insertion
	r.next, g.at[at] = g.at[at], r
	if !isWater(id.Name) {
		r.Atoms = make([]*Atom, 0, 8) // the size of most amino acids
	}
	if first == nil || again || a.Alternate == "" || !first.Alternates() { // otherwise it is an alternative to the first
		g.model.Residues = append(g.model.Residues, r)
	}
	return r
}

// farthest is the largest distance in Å between an atom and the nearest other atom of its
// residue when an atom between them is missing.
const farthest = 3

// continues reports whether an atom belongs to a residue although it does not follow the
// other atoms, like hydrogens that a program appended to the file.
func (r *Residue) continues(a *Atom) bool {
	return !r.full(a) && slices.ContainsFunc(r.Atoms, func(b *Atom) bool { return Distance(a, b) <= farthest })
}

// full reports whether a residue already has an atom with the name of a, apart from
// alternate locations of a.
func (r *Residue) full(a *Atom) bool {
	return slices.ContainsFunc(r.Atoms, func(b *Atom) bool {
		places := b.Alternate != a.Alternate && (b.Alternate != "" && a.Alternate != "" || Distance(a, b) <= longestBond)
		return b.Name == a.Name && !places
	})
}

// finish identifies the polymers after the last atom.
func (g *grouper) finish() {
	m := g.model
	for _, r := range m.Residues {
		switch kind := g.types[r.entity]; {
		case kind == "polymer":
			r.member = inside
		case kind != "":
			r.member = outside
		}
	}
	m.trustSequence()
	m.classify()
	m.chain()
	g.at, g.texts, g.labels, g.lines = nil, nil, nil, nil
}
