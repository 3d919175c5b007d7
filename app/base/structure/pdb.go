package structure

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// pdb is the parser state that lines of a PDB file pass on to later ones.
type pdb struct {
	begun   bool  // an atom has been read
	between bool  // the last model has ended
	end     int   // the line with the word END that has ended it; 0 if another word has
	first   first // atom of the first model
	columns columns
}

// linePDB reads a line of a PDB file.
func (r *Reader) linePDB(line string, number int) error {
	switch p := &r.pdb; {
	case isAtom(line):
		return r.atomPDB(line, number)
	case line != "" && isBlank(line[0]) && isIndented(line):
		return fmt.Errorf("has a blank before the atom in line %d: an atom of a PDB file begins in the first column", number)
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

// isAtom reports whether a line is an atom. Its number may begin in the sixth column.
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

// isIndented reports whether an atom follows blanks, with which others would lose it.
func isIndented(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return isAtom(line) && hasPoints(line)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// hasWord reports whether a line begins with a word, followed by nothing or a blank.
func hasWord(line, word string) bool {
	return len(line) >= len(word) && strings.EqualFold(line[:len(word)], word) && (len(line) == len(word) || isBlank(line[len(word)]))
}

// atomPDB reads an atom, if it belongs to the first model.
func (r *Reader) atomPDB(line string, number int) error {
	p, m := &r.pdb, r.grouper.model
	if p.between && !r.Ended && p.end > 0 {
		again := row{Atom: Atom{Label: &Label{}}}
		if again.readPDB(line, number, &columns{pairs: p.columns.pairs}) != nil || again.id() != p.first {
			return fmt.Errorf("has atoms behind END in line %d, which are no other model of those before: remove that line if they belong together, else give each structure a file of its own", p.end)
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

// first is what distinguishes the first atom of a model from others.
type first struct {
	name    string
	residue residueID
}

func (a *row) id() first { return first{a.Name, a.residue} }

// readPDB reads an atom of a PDB file, whose columns are fixed.
func (a *row) readPDB(line string, number int, c *columns) error {
	line = unshifted(line)
	if len(line) < 54 && strings.IndexByte(line, '\t') < 0 {
		return fmt.Errorf("breaks off in line %d: an atom of a PDB file has coordinates in columns 31 to 54", number)
	}
	if strings.IndexByte(line[:min(len(line), 54)], '\t') >= 0 {
		return fmt.Errorf("has a tab in line %d: a PDB file has columns of a fixed width, so write blanks", number)
	}
	if shifted(line) {
		return fmt.Errorf("has its columns shifted by one in line %d: an atom of a PDB file has coordinates in columns 31 to 54", number)
	}
	ok := false
	for k := range a.Place {
		at := 30 + 8*k
		if a.Place[k], ok = Coordinate(line[at : at+8]); !ok {
			return fmt.Errorf("has no coordinate in columns %d to %d of line %d, but %q", at+1, at+8, number, line[at:at+8])
		}
	}
	if a.residue.Number, ok = c.readNumber(line[22:26]); !ok {
		return fmt.Errorf("has no residue number in columns 23 to 26 of line %d, but %q; beyond 9999, write mmCIF or hybrid-36 (A000)", number, line[22:26])
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

// isElement reports whether columns of an element have one. Some programs write other things
// there.
func isElement(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool { return c < 'A' || c > 'Z' })
}

// unshifted takes the digits out of a line whose number of the atom has more than fit, and
// has shifted what follows, which the points of the coordinates show.
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

// hasPoints reports whether coordinates have their points where they belong.
func hasPoints(line string) bool {
	return len(line) > 50 && line[34] == '.' && line[42] == '.' && line[50] == '.'
}

// shifted reports whether all columns are one too far to the left or the right. Coordinates of
// four or two decimals have their points there, too, but end with their columns.
func shifted(line string) bool {
	switch {
	case hasPoints(line):
		return false
	case hasPoints(" " + line):
		return !isDigit(line[37]) || !isDigit(line[45])
	}
	return hasPoints(line[1:]) && isDigit(line[38]) && isDigit(line[46])
}

// columns reads what lines before help to read.
type columns struct {
	pairs bool // chains have names of two letters
	hex   bool // the last number was hexadecimal
	last  int
}

// readChain reads the chain, of which the last column is its own. That before it belongs to
// names of residues with four letters, or to those of chains with two.
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

// readNumber reads the number of a residue, which has four columns. Beyond 9999, some programs continue
// with A000 to ZZZZ and a000 to zzzz (hybrid-36), and others with 2710 (hexadecimal).
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

// hybrid reads a number of hybrid-36 that begins with a letter.
func hybrid(text string) (int, bool) {
	const letters = 26 * 36 * 36 * 36 // numbers that begin with one
	n, err := strconv.ParseInt(text, 36, 64)
	n += 10_000 - letters/26*10
	if text == strings.ToLower(text) {
		n += letters
	}
	mixed := text != strings.ToUpper(text) && text != strings.ToLower(text)
	return int(n), err == nil && text[0] > '9' && !mixed
}

// field returns the text of some columns, "" if the line is shorter.
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
