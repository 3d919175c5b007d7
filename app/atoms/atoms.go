// Package atoms reads the atoms of structures, from PDB and mmCIF files.
package atoms

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"molrun/app/unit"
)

// Atom is one line of a structure. Names are those of the authors, as in PDB files.
type Atom struct {
	Name      string // CA
	Alternate string // A or B of an atom at several places; else ""
	Residue   string // ALA
	Chain     string
	Number    int        // of the residue
	Insertion string     // of the residue; else ""
	Place     [3]float64 // Å
	Occupancy float64
	B         float64 // B factor in Å², or the confidence of a prediction
	Element   string  // C, or "" if the file does not say and the name does not show it
	Hetero    bool    // HETATM
}

// Site is an atom as far as it takes to count atoms, residues and chains. What it has in
// common with Atom is the same.
type Site struct {
	Name, Alternate, Element string
	Residue                  Residue
	Place                    [3]float64
	Hetero                   bool
}

// Residue names a residue: atoms that follow one another and have the same one are of the
// same residue.
type Residue struct{ Name, Chain, Number, Insertion string }

// Reader takes the lines of a file, one after the other. The zero value is ready.
type Reader struct {
	Models int  // that have begun, at least 1 when there are atoms
	Ended  bool // the first model has

	table *table
	model string
}

// Read reads the atoms of a file's first model, and counts its models.
func Read(file io.Reader, each func(*Atom)) (models int, err error) {
	var r Reader
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxLine)
	for number := 1; lines.Scan(); number++ {
		atom, err := r.Line(strings.TrimSuffix(lines.Text(), "\r"), number)
		if err != nil {
			return 0, err
		}
		if atom != nil {
			each(atom)
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return 0, fmt.Errorf("has a line of more than %s", unit.Bytes(maxLine))
	}
	return r.Models, lines.Err()
}

// maxLine bounds a line, in bytes.
const maxLine = 64 << 20

// Line returns the atom in a line, or nil if there is none or it is of a later model.
// The error says what is wrong with which line.
func (r *Reader) Line(line string, number int) (*Atom, error) {
	s, ok, err := r.Site(line, number)
	if !ok || err != nil {
		return nil, err
	}
	if r.table != nil {
		return r.table.atomAt(s, number)
	}
	return pdbAtom(line, s, number)
}

// Site returns the site of the atom in a line, as Line does; ok is false where that
// returns nil. It does not ask for a number of the residue.
func (r *Reader) Site(line string, number int) (s Site, ok bool, err error) {
	switch {
	case r.table != nil && !r.table.ended:
		return r.row(line, number)
	case strings.HasPrefix(line, "ATOM  ") || strings.HasPrefix(line, "HETATM"):
		r.table = nil
		if r.Models == 0 || r.model == "ended" {
			r.Models++
			r.model = ""
		}
		s, err = pdbSite(line, number)
		return s, err == nil && !r.Ended, err
	case strings.HasPrefix(line, "_atom_site."):
		r.table = &table{columns: map[string]int{}}
		r.table.name(line)
	case strings.HasPrefix(line, "ENDMDL"):
		r.Ended = r.Models > 0
		r.model = "ended"
	}
	return s, false, nil
}

// pdbSite reads an atom of a PDB file, whose columns are fixed.
func pdbSite(line string, number int) (s Site, err error) {
	if len(line) < 54 {
		return s, fmt.Errorf("breaks off in line %d: an atom of a PDB file has coordinates in columns 31 to 54", number)
	}
	for k := range s.Place {
		at, ok := 30+8*k, false
		if s.Place[k], ok = Coordinate(line[at : at+8]); !ok {
			return s, fmt.Errorf("has no coordinate in columns %d to %d of line %d, but %q", at+1, at+8, number, line[at:at+8])
		}
	}
	s.Name, s.Alternate, s.Hetero = strings.TrimSpace(line[12:16]), strings.TrimSpace(line[16:17]), line[0] == 'H'
	if s.Element = strings.ToUpper(field(line, 76, 78)); s.Element == "" {
		s.Element = elementOf(line[12:16], s.Hetero)
	}
	s.Residue = Residue{
		Name: strings.TrimSpace(line[17:20]), Chain: strings.TrimSpace(line[21:22]),
		Number: strings.TrimSpace(line[22:26]), Insertion: strings.TrimSpace(line[26:27]),
	}
	return s, nil
}

func pdbAtom(line string, s Site, number int) (*Atom, error) {
	a, ok := s.atom()
	if !ok {
		return nil, fmt.Errorf("has no residue number in columns 23 to 26 of line %d, but %q", number, line[22:26])
	}
	if v, ok := Coordinate(field(line, 54, 60)); ok {
		a.Occupancy = v
	}
	a.B, _ = Coordinate(field(line, 60, 66))
	return a, nil
}

// atom returns the atom at the site. It reports whether its residue has a number.
func (s *Site) atom() (*Atom, bool) {
	n, err := strconv.Atoi(s.Residue.Number)
	return &Atom{
		Name: s.Name, Alternate: s.Alternate, Element: s.Element, Hetero: s.Hetero, Place: s.Place, Occupancy: 1,
		Residue: s.Residue.Name, Chain: s.Residue.Chain, Number: n, Insertion: s.Residue.Insertion,
	}, err == nil
}

// field is what stands in columns that a line may not have.
func field(line string, from, to int) string {
	if len(line) <= from {
		return ""
	}
	return strings.TrimSpace(line[from:min(to, len(line))])
}

// elementOf takes the element from a name of four columns, of which the first two are the
// element, aligned to the right.
func elementOf(name string, hetero bool) string {
	two := strings.ToUpper(strings.Trim(name[:2], " 0123456789"))
	if name[0] == ' ' || !hetero || len(two) < 2 { // HG11 of a residue is a hydrogen
		letters := strings.TrimLeft(strings.ToUpper(name), " 0123456789")
		if letters == "" {
			return ""
		}
		return letters[:1]
	}
	return two
}

// Coordinate reads a finite number, with blanks around it.
func Coordinate(text string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}
