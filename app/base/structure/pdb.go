package structure

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// pdb is the parser state that is kept between the lines of a PDB file.
type pdb struct {
	begun   bool  // an atom has been read
	between bool  // the last model has ended
	end     int   // the line of the END record that ended it; 0 if another record did
	first   first // atom of the first model
	columns columns
}

// linePDB reads a line of a PDB file.
func (r *Reader) linePDB(line string, number int) error {
	switch p := &r.pdb; {
	case isAtom(line):
		return r.atomPDB(line, number)
	case line != "" && isBlank(line[0]) && isIndented(line):
		return fmt.Errorf("has leading blanks before the atom in line %d: atom records of a PDB file start in the first column", number)
	case !p.begun:
	case hasWord(line, "TER"):
		if !r.Ended {
			r.grouper.ter()
		}
	case hasWord(line, "ENDMDL"), hasWord(line, "MODEL"):
		p.between, p.end = true, 0
	case hasWord(line, "END"):
		if !p.between {
			p.between, p.end = true, number
		}
	}
	return nil
}

// isAtom reports whether a line is an atom record. The atom number can start in the sixth
// column.
func isAtom(line string) bool {
	if len(line) < 6 {
		return false
	}
	switch line[0] {
	case 'A', 'a':
		return strings.EqualFold(line[:4], "ATOM") && isBlank(line[4]) && (isBlank(line[5]) || isDigit(line[5]))
	case 'H', 'h':
		return strings.EqualFold(line[:6], "HETATM")
	}
	return false
}

// isIndented reports whether a line is an atom record preceded by blanks, which other
// programs would not read.
func isIndented(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return isAtom(line) && hasPoints(line)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// hasWord reports whether a line starts with a word that is followed by a blank or
// nothing.
func hasWord(line, word string) bool {
	return len(line) >= len(word) && strings.EqualFold(line[:len(word)], word) && (len(line) == len(word) || isBlank(line[len(word)]))
}

// atomPDB reads an atom, if it belongs to the first model.
func (r *Reader) atomPDB(line string, number int) error {
	p, m := &r.pdb, r.grouper.model
	if p.between && !r.Ended && p.end > 0 {
		again := row{Atom: Atom{Label: &Label{}}}
		if again.readPDB(line, number, &columns{pairs: p.columns.pairs}) != nil || again.id() != p.first {
			return fmt.Errorf("has atoms after END in line %d that are not another model of the previous ones: remove that line if they belong together; otherwise put each structure in a separate file", p.end)
		}
	}
	if !p.begun || p.between {
		m.Models++
		p.begun, p.between = true, false
		r.Ended = m.Models > 1
	}
	if r.Ended {
		return nil
	}
	if err := r.row.readPDB(line, number, &p.columns); err != nil {
		return err
	}
	if m.Atoms == 0 {
		p.first = r.row.id()
	}
	r.grouper.addAtom(&r.row, "", 0)
	return nil
}

// first identifies the first atom of a model.
type first struct {
	name    string
	residue residueID
}

func (a *row) id() first { return first{a.Name, a.residue} }

// readPDB reads an atom record of a PDB file, which has fixed columns.
func (a *row) readPDB(line string, number int, c *columns) error {
	line = unshifted(line)
	if len(line) < 54 && strings.IndexByte(line, '\t') < 0 {
		return fmt.Errorf("is truncated in line %d: atom records of a PDB file have coordinates in columns 31 to 54", number)
	}
	if strings.IndexByte(line[:min(len(line), 54)], '\t') >= 0 {
		return fmt.Errorf("has a tab in line %d: a PDB file has fixed-width columns, so use blanks", number)
	}
	if shifted(line) {
		return fmt.Errorf("has its columns shifted by one in line %d: atom records of a PDB file have coordinates in columns 31 to 54", number)
	}
	ok := false
	for k := range a.Position {
		at := 30 + 8*k
		if a.Position[k], ok = Coordinate(line[at : at+8]); !ok {
			return fmt.Errorf("has no valid coordinate in columns %d to %d of line %d: %q", at+1, at+8, number, line[at:at+8])
		}
	}
	if a.residue.Number, ok = c.readNumber(line[22:26]); !ok {
		return fmt.Errorf("has no valid residue number in columns 23 to 26 of line %d: %q; above 9999, use mmCIF or hybrid-36 (A000)", number, line[22:26])
	}
	a.Name, a.Alternate, a.Hetero = strings.TrimSpace(line[12:16]), strings.TrimSpace(line[16:17]), line[0]|0x20 == 'h'
	a.residue.Name, a.residue.Insertion = strings.TrimSpace(line[17:20]), strings.TrimSpace(line[26:27])
	a.residue.Chain = strings.TrimSpace(c.readChain(line[17:22], a.residue.Name))
	if a.Element = strings.ToUpper(field(line, 76, 78)); !isElement(a.Element) {
		a.Element = elementOf(line[12:16], a.Hetero)
	}
	a.occupied(field(line, 54, 60), field(line, 60, 66))
	return nil
}

// isElement reports whether the element columns hold an element. Some programs write
// other data there.
func isElement(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool { return c < 'A' || c > 'Z' })
}

// unshifted removes the extra digits of an atom number that is too long and has shifted
// the rest of the line, as the decimal points of the coordinates show.
func unshifted(line string) string {
	by := 0
	for 11+by < len(line) && isDigit(line[11+by]) {
		by++
	}
	if by == 0 || len(line) < 54+by || hasPoints(line) || !hasPoints(line[by:]) {
		return line
	}
	return line[:6] + line[6+by:]
}

// hasPoints reports whether the coordinates have their decimal points in the right
// columns.
func hasPoints(line string) bool {
	return len(line) > 50 && line[34] == '.' && line[42] == '.' && line[50] == '.'
}

// shifted reports whether all columns are shifted by one to the left or right.
// Coordinates with four or two decimals also have their points there, but end in the
// right columns.
func shifted(line string) bool {
	switch {
	case hasPoints(line):
		return false
	case hasPoints(" " + line):
		return !isDigit(line[37]) || !isDigit(line[45])
	}
	return hasPoints(line[1:]) && isDigit(line[38]) && isDigit(line[46])
}

// columns holds what earlier lines have shown about the layout of the columns.
type columns struct {
	pairs bool // chain names have two letters
	hex   bool // the last number was hexadecimal
	last  int
}

// readChain reads the chain name, which occupies the last column. The column before it
// can belong to a four-letter residue name or a two-letter chain name.
func (c *columns) readChain(text, residue string) string {
	if text[3] == ' ' {
		return text[4:]
	}
	if !c.pairs {
		known := isAmino(residue) || residue == "HOH" || slices.Contains(nucleos, residue)
		c.pairs = known && !slices.Contains(protonated, text[:4])
	}
	if c.pairs {
		return text[3:]
	}
	return text[4:]
}

// readNumber reads a residue number, which has four columns. Above 9999, some programs
// continue with A000 to ZZZZ and a000 to zzzz (hybrid-36), and others with 2710
// (hexadecimal).
func (c *columns) readNumber(text string) (int, bool) {
	v, ok := c.of(text)
	if ok {
		c.last = v
	}
	return v, ok
}

func (c *columns) of(text string) (int, bool) {
	v, err := strconv.Atoi(strings.TrimSpace(text))
	if err == nil && c.last == 9999 && text == "2710" {
		c.hex = true
		return 10_000, true
	}
	if err == nil && !c.hex {
		return v, true
	}
	hex, wrong := strconv.ParseUint(text, 16, 32)
	isHex, digit := wrong == nil, isDigit(text[0])
	switch {
	case err == nil && isHex && digit && int(hex) >= c.last:
		return int(hex), true
	case err == nil:
		c.hex = false
		return v, true
	case isHex && (digit || c.hex && int(hex) >= c.last):
		c.hex = true
		return int(hex), true
	}
	return hybrid(text)
}

// hybrid reads a hybrid-36 number that starts with a letter.
func hybrid(text string) (int, bool) {
	const letters = 26 * 36 * 36 * 36 // count of numbers that start with an upper-case letter
	n, err := strconv.ParseInt(text, 36, 64)
	n += 10_000 - letters/26*10
	if text == strings.ToLower(text) {
		n += letters
	}
	mixed := text != strings.ToUpper(text) && text != strings.ToLower(text)
	return int(n), err == nil && text[0] > '9' && !mixed
}

// field returns the text of some columns, or "" if the line is too short.
func field(line string, from, to int) string {
	if len(line) <= from {
		return ""
	}
	return strings.TrimSpace(line[from:min(to, len(line))])
}

// elementOf derives the element from a four-column atom name, whose first two columns are
// the right-aligned element.
func elementOf(name string, hetero bool) string {
	two := strings.ToUpper(strings.Trim(name[:2], " 0123456789"))
	if name[0] == ' ' || !hetero || len(two) < 2 { // HG11 in an ATOM record is a hydrogen
		letters := strings.TrimLeft(strings.ToUpper(name), " 0123456789")
		if letters == "" {
			return ""
		}
		return letters[:1]
	}
	return two
}
