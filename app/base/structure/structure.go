// Package structure reads the atoms of structures from PDB and mmCIF files, identifies
// polymers, ligands and water, and writes PDB files.
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

// Atom is an atom at one of its locations. Names are author names, as in PDB files.
type Atom struct {
	*Label
	Position  [3]float64 // Å
	Occupancy float64
	B         float64 // B factor in Å², or the confidence of a prediction
	Hetero    bool    // HETATM
}

// Label is the name of an atom, shared by many atoms.
type Label struct {
	Name      string // CA
	Alternate string // A or B if the atom has several locations; otherwise ""
	Element   string // C, or "" if it is not in the file and not clear from the name
}

// row is one atom record of a structure.
type row struct {
	Atom
	residue residueID
}

// residueID identifies the residue of an atom record.
type residueID struct {
	Name, Chain, Insertion string
	Number                 int
}

// Hydrogen reports whether the atom is hydrogen or deuterium.
func (a *Atom) Hydrogen() bool { return a.Element == "H" || a.Element == "D" }

// Reader reads the lines of a file one by one.
type Reader struct {
	Ended bool // the rest of the file does not belong to the first model

	grouper grouper
	cif     *cif
	pdb     pdb
	row     row
}

// NewReader returns a reader of the first model.
func NewReader() *Reader {
	return &Reader{row: row{Atom: Atom{Label: &Label{}}}, grouper: grouper{
		model: &Model{}, at: map[place]*Residue{}, lines: map[string]*strand{}, texts: map[string]string{}, labels: map[Label]*Label{},
	}}
}

// Read reads the first model of a file, which can be gzip-compressed, and counts its
// models. If it returns an error, the model holds the atoms read before the error.
func Read(file io.Reader) (*Model, error) {
	r := NewReader()
	text, _, err := plaintext.Unpack(file)
	if err != nil {
		return r.grouper.model, err
	}
	lines := bufio.NewScanner(plaintext.NewReader(text))
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for number := 1; lines.Scan(); number++ {
		if err := r.Line(lines.Text(), number); err != nil {
			return r.grouper.model, err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return r.grouper.model, fmt.Errorf("has a line of more than %s", unit.Bytes(maxLine))
	}
	if lines.Err() != nil {
		return r.grouper.model, lines.Err()
	}
	return r.Model()
}

// maxLine limits the length of a line in bytes.
const maxLine = 64 << 20

// Line reads a line without its line end. The error names the line.
func (r *Reader) Line(line string, number int) error {
	if r.cif == nil && !r.pdb.begun && beginsCIF(line) {
		r.cif = &cif{reader: r}
	}
	if r.cif != nil {
		return r.cif.line(line, number)
	}
	return r.linePDB(line, number)
}

// Atoms returns the number of atoms of the first model so far.
func (r *Reader) Atoms() int { return r.grouper.model.Atoms }

// Model returns the first model. It must be called at the end of the file, and returns an
// error if the file is truncated.
func (r *Reader) Model() (*Model, error) {
	var err error
	if r.cif != nil {
		err = r.cif.checkEnd()
	}
	r.grouper.finish()
	return r.grouper.model, err
}

// occupied reads occupancy and B factor, which can be missing.
func (a *Atom) occupied(occupancy, b string) {
	a.Occupancy = 1
	if v, ok := Coordinate(occupancy); ok {
		a.Occupancy = v
	}
	a.B, _ = Coordinate(b)
}

// Coordinate parses a finite number, which can be surrounded by blanks.
func Coordinate(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	if v, ok := decimal(text); ok {
		return v, true
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// decimal parses a short decimal number like strconv, but faster.
func decimal(text string) (float64, bool) {
	digits, sign := text, 1.0
	if text != "" && (text[0] == '-' || text[0] == '+') {
		digits = text[1:]
		if text[0] == '-' {
			sign = -1
		}
	}
	if len(digits) == 0 || len(digits) > 15 { // up to 15 digits, dividend and divisor are exact
		return 0, false
	}
	n, point := int64(0), -1
	for k := range len(digits) {
		switch c := digits[k]; {
		case c >= '0' && c <= '9':
			n = 10*n + int64(c-'0')
		case c == '.' && point < 0:
			point = k
		default:
			return 0, false
		}
	}
	switch {
	case point < 0:
		return sign * float64(n), true
	case len(digits) == 1:
		return 0, false
	}
	return sign * float64(n) / powers[len(digits)-1-point], true
}

var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14}
