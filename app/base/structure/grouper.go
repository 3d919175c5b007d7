package structure

import (
	"slices"
	"strings"
)

// grouper makes residues of atoms.
type grouper struct {
	model  *Model
	types  map[string]string // of entities
	last   *Residue
	cut    bool // a TER record stands behind the last atom
	at     map[place]*Residue
	lines  map[string]*strand // by names of chains
	texts  map[string]string  // one of each that is equal
	labels map[Label]*Label   // the same
	block  []Atom             // room for atoms
}

// place is where residues of one number stand.
type place struct {
	chain, insertion string
	part, number     int32
}

// strand is the last part of a chain so far.
type strand struct {
	part   int
	ended  bool // a TER record stands behind it
	number int  // of the last residue that is ATOM
}

// entity notes the type of an entity.
func (g *grouper) entity(id, kind string) {
	if g.types == nil {
		g.types = map[string]string{}
	}
	g.types[id] = kind
}

// ter notes the end of a polymer. Some programs write TER behind ligands and water too.
func (g *grouper) ter() {
	if g.last != nil {
		g.cut, g.last.ends = true, true
		g.lines[g.last.Chain].ended = true
	}
}

// blockSize is for how many atoms room is made at once.
const blockSize = 4096

// addAtom adds an atom, in an mmCIF file with its entity and the number of its residue in the
// sequence: -1 for none, 0 if it is not known.
func (g *grouper) addAtom(a *row, entity string, sequence int) {
	g.model.Atoms++
	r := g.last
	if r == nil || g.cut || r.id() != a.residue || r.another(&a.Atom) {
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

// text returns a text that does not keep the line of the file.
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

// label returns one that is kept.
func (g *grouper) label(l *Label) *Label {
	own := g.labels[*l]
	if own == nil {
		own = &Label{g.text(l.Name), g.text(l.Alternate), g.text(l.Element)}
		g.labels[*own] = own
	}
	return own
}

func (r *Residue) id() residueID { return residueID{r.Name, r.Chain, r.Insertion, r.Number} }

// another reports whether an atom with the names of a residue, right behind it, is of another
// one to which the file gives the same number: the first atom comes again.
func (r *Residue) another(a *Atom) bool {
	switch first := r.Atoms[0]; {
	case isWater(r.Name) || r.Name == a.Name: // a water or an ion
		return r.full(a)
	case first.Name != a.Name || first.Alternate != a.Alternate:
		return false
	}
	return r.distinct() && !slices.ContainsFunc(r.Atoms, func(b *Atom) bool { return Distance(a, b) <= longestBond })
}

// distinct reports whether the names of atoms are no mere elements, of which there are several.
func (r *Residue) distinct() bool {
	for k, a := range r.Atoms {
		if slices.ContainsFunc(r.Atoms[:k], func(b *Atom) bool { return b.Name == a.Name && b.Alternate == a.Alternate }) {
			return false
		}
	}
	return true
}

// residue returns the residue of an atom that is not of the last one.
func (g *grouper) residue(a *row) *Residue {
	id := a.residue
	s := g.lines[id.Chain]
	if s == nil {
		s = &strand{number: id.Number}
		g.lines[g.text(id.Chain)] = s
	}
	at := place{id.Chain, id.Insertion, int32(s.part), int32(id.Number)}
	var first *Residue // of the same number
	again := false     // the file has had this residue
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
		r.behind = s.ended
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
		r.Atoms = make([]*Atom, 0, 8) // as most amino acids have
	}
	if first == nil || again || a.Alternate == "" || !first.Alternates() { // else it is in place of that one
		g.model.Residues = append(g.model.Residues, r)
	}
	return r
}

// farthest is that of an atom from the nearest one of its residue, in Å, while one between
// them is not there.
const farthest = 3

// continues reports whether an atom that does not follow the others belongs to a residue, as
// hydrogens that a program has added at the end of the file do.
func (r *Residue) continues(a *Atom) bool {
	return !r.full(a) && slices.ContainsFunc(r.Atoms, func(b *Atom) bool { return Distance(a, b) <= farthest })
}

// full reports whether a residue has an atom of that name, of which another is no other place.
func (r *Residue) full(a *Atom) bool {
	return slices.ContainsFunc(r.Atoms, func(b *Atom) bool {
		places := b.Alternate != a.Alternate && (b.Alternate != "" && a.Alternate != "" || Distance(a, b) <= longestBond)
		return b.Name == a.Name && !places
	})
}

// finish finds the polymers, when all atoms are there.
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
