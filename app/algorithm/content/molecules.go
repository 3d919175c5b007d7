package content

import (
	"bufio"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"molrun/app/base/plaintext"
	"molrun/app/base/structure"
	"molrun/app/base/tables"
)

// checkMolecules reads an SDF, MOL or MOL2 file, lines of SMILES, or a table of them.
func checkMolecules(text *lines, want Want) error {
	m := molecules{want: want}
	for line, ok := text.next(); ok; line, ok = text.next() {
		if want.AnyText {
			line = strings.ToValidUTF8(line, "?") // in names
		}
		if err := text.plain(line); err != nil {
			return err
		}
		if err := m.readLine(line, text.number); err != nil && !want.Tolerant {
			return err
		}
	}
	if err := text.err(); err != nil {
		return err
	}
	return m.checkEnd(text.number)
}

// molecules reads the records of a file of small molecules. The first lines tell the
// format: the fourth of a MOL or SDF file ends with its version.
type molecules struct {
	want    Want
	head    []string // the first lines
	format  string   // mol, mol2, smiles, table
	records int
	line    int    // within a record of an SDF file, from 1
	left    int    // atoms to come
	before  string // of a line of version 3000 that continues

	comma   rune // of a table
	column  int  // of a table, with its SMILES
	header  bool // of a table: it has been read
	inAtoms bool // in those of a MOL2 file, or of version 3000
	heavy   int  // atoms of the molecule so far that are no hydrogens
	largest int  // most of them in one molecule
}

func (m *molecules) readLine(line string, number int) error {
	if m.format != "" {
		return m.record(line, number)
	}
	m.head = append(m.head, line)
	switch {
	case strings.HasPrefix(line, "@<TRIPOS>"):
		m.format = "mol2"
	case len(m.head) == 4 && (strings.HasSuffix(line, "V2000") || strings.HasSuffix(line, "V3000")):
		m.format = "mol"
	case len(m.head) == 4:
		m.format = m.ofLines()
	default:
		return nil
	}
	return m.replay(number)
}

// replay reads the first lines again, now that the format is known.
func (m *molecules) replay(number int) error {
	head := m.head
	m.head = nil
	for i, line := range head {
		if err := m.record(line, number-len(head)+1+i); err != nil && !m.want.Tolerant {
			return err
		}
	}
	return nil
}

// ofLines returns the format of a file with a molecule in each line: a table if one of the
// columns that its first line names is called smiles. Excel may say what separates them first.
func (m *molecules) ofLines() string {
	if len(m.head) > 1 && strings.HasPrefix(strings.ToLower(m.head[0]), "sep=") {
		m.head = m.head[1:]
	}
	for _, m.comma = range ",;\t" {
		m.column = slices.IndexFunc(cells(m.head[0], m.comma), func(name string) bool { return strings.EqualFold(strings.TrimSpace(name), "smiles") })
		if m.column >= 0 {
			return "table"
		}
	}
	return "smiles"
}

// cells returns the columns of a line of a table.
func cells(line string, comma rune) []string {
	r := csv.NewReader(strings.NewReader(line))
	r.Comma, r.LazyQuotes = comma, true
	all, _ := r.Read() // an empty line has none
	return all
}

// count counts an atom of the molecule.
func (m *molecules) count(element string) {
	if element != "H" && element != "D" && element != "T" {
		m.heavy++
		m.largest = max(m.largest, m.heavy)
	}
}

func (m *molecules) record(line string, number int) error {
	switch m.format {
	case "mol2":
		return m.mol2(line, number)
	case "smiles":
		return m.smiles(line, number)
	case "table":
		all := cells(line, m.comma)
		if m.header && m.column < len(all) {
			return m.smiles(strings.TrimSpace(all[m.column]), number)
		}
		m.header = true
		return nil
	}
	return m.mol(line, number)
}

func (m *molecules) smiles(line string, number int) error {
	words := strings.Fields(line)
	if len(words) == 0 || strings.HasPrefix(line, "#") {
		return nil
	}
	if fault := smilesFault(words[0]); fault != "" {
		return wrong("is neither an SDF, MOL or MOL2 file nor a list of SMILES: line %d has %.40q, %s", number, words[0], fault)
	}
	m.records++
	m.heavy = 0
	for _, letter := range atomsOf(words[0]) {
		if letter == '.' { // what follows is another molecule, of a salt
			m.heavy = 0
			continue
		}
		m.count(string(letter))
	}
	return nil
}

// atomsOf returns a letter for each atom of a SMILES, and dots.
func atomsOf(smiles string) (atoms []byte) {
	for i := 0; i < len(smiles); i++ {
		switch letter := smiles[i]; {
		case letter == '[':
			symbol := strings.TrimLeft(smiles[i+1:], "0123456789")
			i += max(0, strings.IndexByte(smiles[i:], ']'))
			if len(symbol) > 1 && symbol[0] == 'H' && strings.IndexByte("]+-", symbol[1]) >= 0 {
				atoms = append(atoms, 'H')
				continue
			}
			atoms = append(atoms, '*')
		case strings.IndexByte("BCNOPSFIbcnops*.", letter) >= 0:
			atoms = append(atoms, letter)
		}
	}
	return atoms
}

// mol2 reads a line of a MOL2 file.
func (m *molecules) mol2(line string, number int) error {
	if strings.HasPrefix(line, "@<TRIPOS>") {
		m.inAtoms = strings.HasPrefix(line, "@<TRIPOS>ATOM")
		if strings.HasPrefix(line, "@<TRIPOS>MOLECULE") {
			m.records++
			m.heavy = 0
		}
		return nil
	}
	words := strings.Fields(line)
	if !m.inAtoms || len(words) == 0 || strings.HasPrefix(line, "#") {
		return nil
	}
	if len(words) < 6 || !areCoordinates(words[2:5]) {
		return wrong("has no atom with coordinates in line %d, but %.40q", number, line)
	}
	element, _, _ := strings.Cut(words[5], ".")
	m.count(element)
	return nil
}

// smilesFault says why a word is no SMILES, "" if its characters make one. It counts no
// valences and closes no rings.
func smilesFault(word string) string {
	depth := 0
	for i := 0; i < len(word); i++ {
		rest := word[i:]
		switch {
		case rest[0] == '[':
			end := strings.IndexByte(rest, ']')
			if end < 2 {
				return "in which a bracket is empty or not closed"
			}
			i += end
		case strings.HasPrefix(rest, "Cl") || strings.HasPrefix(rest, "Br"):
			i++
		case rest[0] == '(':
			depth++
		case rest[0] == ')':
			if depth--; depth < 0 {
				return "in which a parenthesis closes that was not opened"
			}
		case strings.IndexByte("BCNOPSFIbcnops*0123456789%-=#$:/\\.~", rest[0]) < 0:
			return "in which letter " + strconv.Itoa(i+1) + " is no atom, bond or ring; other elements stand in brackets"
		}
	}
	if depth > 0 {
		return "in which a parenthesis is not closed"
	}
	return ""
}

// mol reads a line of an SDF file. Records end with $$$$.
func (m *molecules) mol(line string, number int) error {
	if strings.HasPrefix(line, "$$$$") {
		broken := m.line > 0 && m.line < 4 || m.left != 0
		m.line, m.left, m.heavy, m.inAtoms, m.before = 0, 0, 0, false, ""
		if broken {
			return wrong("has a molecule that breaks off in line %d", number)
		}
		return nil
	}
	m.line++
	switch {
	case m.line == 4 && strings.HasSuffix(line, "V3000"):
		m.records++
		m.left = unknown
	case m.line == 4 && strings.HasSuffix(line, "V2000"):
		m.records++
		return m.counted(line[:min(3, len(line))], number)
	case m.line == 4:
		return wrong("has no count of atoms in line %d, the fourth of a molecule, but %.40q", number, line)
	case strings.HasPrefix(line, "M  V30 "):
		return m.v3000(line[len("M  V30 "):], number)
	case m.left > 0:
		m.left--
		if len(line) < 34 || !isCoordinate(line[:10]) || !isCoordinate(line[10:20]) || !isCoordinate(line[20:30]) {
			return wrong("has no atom with coordinates in line %d, but %.40q", number, line)
		}
		m.count(strings.TrimSpace(line[31:34]))
	}
	return nil
}

// unknown is how many atoms a molecule of version 3000 has before they are counted.
const unknown = -1

// counted reads how many atoms a molecule has.
func (m *molecules) counted(text string, number int) error {
	atoms, err := strconv.Atoi(strings.TrimSpace(text))
	switch {
	case err != nil || atoms < 0:
		return wrong("has no count of atoms in line %d, but %.40q", number, text)
	case atoms == 0:
		return wrong("has a molecule without atoms, at line %d", number)
	case m.want.MaxAtoms > 0 && atoms > m.want.MaxAtoms:
		return wrong("has a molecule of %d atoms, at line %d; at most %d can be used", atoms, number, m.want.MaxAtoms)
	}
	m.left = atoms
	return nil
}

// longest bounds a line of version 3000 that continues.
const longest = 10_000

// v3000 reads a line of version 3000. One that ends with a hyphen continues in the next.
func (m *molecules) v3000(line string, number int) error {
	line = m.before + line
	begun, goesOn := strings.CutSuffix(line, "-")
	if m.before = ""; goesOn && len(begun) < longest {
		m.before = begun
		return nil
	}
	words := strings.Fields(line)
	switch {
	case len(words) < 2:
	case words[0] == "COUNTS":
		return m.counted(words[1], number)
	case words[1] == "ATOM":
		m.inAtoms = words[0] == "BEGIN"
	case m.inAtoms && (len(words) < 5 || !areCoordinates(words[2:5])):
		return wrong("has no atom with coordinates in line %d, but %.40q", number, line)
	case m.inAtoms:
		m.left--
		m.count(words[1])
	}
	return nil
}

func areCoordinates(words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !isCoordinate(word) })
}

func (m *molecules) checkEnd(number int) error {
	if m.format == "" && len(m.head) > 0 {
		m.format = m.ofLines()
		if err := m.replay(number); err != nil {
			return err
		}
	}
	if m.left != 0 && !m.want.Tolerant {
		return wrong("breaks off in line %d: the last molecule has more atoms, or fewer, than it says", number)
	}
	m.want.found.Facts["records"], m.want.found.Facts["largest"] = float64(m.records), float64(m.largest)
	least := m.want.MinRecords
	if !m.want.Tolerant {
		least = max(1, least)
	}
	return within(m.records, least, m.want.MaxRecords, "molecule")
}

// checkTable reads a text file of columns.
func checkTable(f *os.File, want Want) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return wrong("is empty")
	}
	text := plaintext.NewReader(io.NewSectionReader(f, 0, info.Size()))
	all := bufio.NewReader(text)
	begin, _ := all.Peek(len("sep=")) // of an error, Copy tells
	excel := strings.EqualFold(string(begin), "sep=")
	if _, err := io.Copy(io.Discard, all); err != nil {
		return err
	}
	switch {
	case text.Wide:
		return wrong("is UTF-16, as Excel saves Unicode text, which programs don't read: save it as CSV UTF-8")
	case text.Returns:
		return wrong(returns)
	case excel:
		return wrong("begins with a line sep= for Excel, which programs take for the names of columns: remove it")
	}
	var at io.ReaderAt = f
	t, err := tables.Open(at, info.Size(), info.Name(), true)
	if err != nil {
		return faultOf(err)
	}
	var mistakes []error
	for _, name := range want.Columns {
		if !slices.Contains(t.Columns, name) {
			mistakes = append(mistakes, wrong("has no column %q; it has %s", name, strings.Join(t.Columns[:min(len(t.Columns), 20)], ", ")))
		}
	}
	n := 0
	rows := t.Rows(t.Begin())
	for rows.Next() {
		n++
	}
	if err := rows.Err(); err != nil {
		return faultOf(err)
	}
	want.found.Facts["records"] = float64(n)
	return errors.Join(append(mistakes, within(n, max(1, want.MinRecords), want.MaxRecords, "row"))...)
}

// faultOf returns an error in the table as one of the file.
func faultOf(err error) error {
	if mistake, ok := errors.AsType[tables.Error](err); ok {
		return Mistake(mistake)
	}
	return err
}

func isCoordinate(text string) bool {
	_, ok := structure.Coordinate(text)
	return ok
}
