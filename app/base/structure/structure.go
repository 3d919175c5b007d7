// Package structure reads the atoms of structures, from PDB and mmCIF files.
package structure

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"molrun/app/base/plaintext"
	"molrun/app/base/unit"
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

// Reader takes the lines of a file, one after the other, and then its end.
type Reader struct {
	Models int  // that have begun, at least 1 when there are atoms
	Ended  bool // the first model of a PDB file has: nothing that follows belongs to it

	each    func(*Atom)
	cif     *cif
	pdb     bool
	between bool // the last model has ended
	atom    Atom
}

// NewReader returns a reader that passes on each atom of the first model. The atom is
// overwritten by the next one.
func NewReader(each func(*Atom)) *Reader { return &Reader{each: each} }

// Read reads the atoms of a file's first model, and counts its models.
func Read(file io.Reader, each func(*Atom)) (models int, err error) {
	r := NewReader(func(a *Atom) {
		own := *a
		each(&own)
	})
	lines := bufio.NewScanner(plaintext.NewReader(file))
	lines.Buffer(nil, maxLine)
	for number := 1; lines.Scan(); number++ {
		if err := r.Line(lines.Text(), number); err != nil {
			return 0, err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return 0, fmt.Errorf("has a line of more than %s", unit.Bytes(maxLine))
	}
	return r.Models, errors.Join(lines.Err(), r.End())
}

// maxLine bounds a line, in bytes.
const maxLine = 64 << 20

// Line reads a line without what ends it. The error says what is wrong with which line.
func (r *Reader) Line(line string, number int) error {
	switch {
	case r.cif != nil:
		return r.cif.line(line, number)
	case strings.HasPrefix(line, "ATOM  ") || strings.HasPrefix(line, "HETATM"):
		r.pdb = true
		if r.Models == 0 || r.between {
			r.Models++
			r.between = false
		}
		if r.Ended {
			return nil
		}
		if err := r.atom.readPDB(line, number); err != nil {
			return err
		}
		r.each(&r.atom)
	case strings.HasPrefix(line, "ENDMDL"):
		r.Ended = r.Models > 0
		r.between = true
	case !r.pdb && beginsCIF(line):
		r.cif = &cif{reader: r}
		return r.cif.line(line, number)
	}
	return nil
}

// End says what is wrong where the file ends.
func (r *Reader) End() error {
	if r.cif == nil {
		return nil
	}
	return r.cif.end()
}

// readPDB reads an atom of a PDB file, whose columns are fixed.
func (a *Atom) readPDB(line string, number int) error {
	if len(line) < 54 {
		return fmt.Errorf("breaks off in line %d: an atom of a PDB file has coordinates in columns 31 to 54", number)
	}
	ok := false
	for k := range a.Place {
		at := 30 + 8*k
		if a.Place[k], ok = Coordinate(line[at : at+8]); !ok {
			return fmt.Errorf("has no coordinate in columns %d to %d of line %d, but %q", at+1, at+8, number, line[at:at+8])
		}
	}
	if a.Number, ok = hybrid(line[22:26]); !ok {
		return fmt.Errorf("has no residue number in columns 23 to 26 of line %d, but %q; beyond 9999, write mmCIF or hybrid-36 (A000)", number, line[22:26])
	}
	a.Name, a.Alternate, a.Hetero = strings.TrimSpace(line[12:16]), strings.TrimSpace(line[16:17]), line[0] == 'H'
	a.Residue, a.Chain, a.Insertion = strings.TrimSpace(line[17:20]), strings.TrimSpace(line[21:22]), strings.TrimSpace(line[26:27])
	if a.Element = strings.ToUpper(field(line, 76, 78)); a.Element == "" {
		a.Element = elementOf(line[12:16], a.Hetero)
	}
	a.occupied(field(line, 54, 60), field(line, 60, 66))
	return nil
}

// hybrid reads a number of four columns: beyond 9999 they go on with A000 to ZZZZ, and then
// with a000, which is called hybrid-36.
func hybrid(text string) (int, bool) {
	if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
		return n, true
	}
	const letters = 26 * 36 * 36 * 36 // numbers that begin with one
	n, err := strconv.ParseInt(text, 36, 64)
	n += 10_000 - letters/26*10
	if text == strings.ToLower(text) {
		n += letters
	}
	mixed := text != strings.ToUpper(text) && text != strings.ToLower(text)
	return int(n), err == nil && text[0] > '9' && !mixed
}

// occupied reads occupancy and B factor, which files may lack.
func (a *Atom) occupied(occupancy, b string) {
	a.Occupancy = 1
	if v, ok := Coordinate(occupancy); ok {
		a.Occupancy = v
	}
	a.B, _ = Coordinate(b)
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
