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

// checkMolecules reads an SDF, MOL or MOL2 file, lines of SMILES, or a table with SMILES.
func checkMolecules(text *lines, want Want) error {
	m := molecules{want: want}
	for line, ok := text.next(); ok; line, ok = text.next() {
		if want.AcceptsTextVariants {
			line = strings.ToValidUTF8(line, "?") // molecule names can have any encoding
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

// molecules reads the records of a small-molecule file. The first lines determine the
// format: the fourth line of a MOL or SDF file ends with the format version.
type molecules struct {
	want    Want
	head    []string // the first lines, until the format is known
	format  string   // mol, mol2, smiles or table
	records int
	line    int    // line number within an SDF record, from 1
	left    int    // atoms still expected
	before  string // start of a V3000 line that continues

	comma   rune // separator, for tables
	column  int  // index of the SMILES column, for tables
	header  bool // the header of the table was read
	inAtoms bool // within the atom block of a MOL2 or V3000 file
	heavy   int  // heavy atoms of the current molecule so far
	largest int  // most heavy atoms in one molecule
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

// replay parses the first lines, now that the format is known.
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

// ofLines returns the format of a file with one molecule per line: a table if a column in
// the header is named smiles, otherwise SMILES. The header can follow a sep= line from
// Excel.
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

// cells splits a line of a table into columns.
func cells(line string, comma rune) []string {
	r := csv.NewReader(strings.NewReader(line))
	r.Comma, r.LazyQuotes = comma, true
	all, _ := r.Read() // empty for an empty line
	return all
}

// count adds an atom to the current molecule. Hydrogen is not counted.
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
		return mistakef("is neither an SDF, MOL or MOL2 file nor a list of SMILES: line %d has %.40q, %s", number, words[0], fault)
	}
	m.records++
	m.heavy = 0
	for _, letter := range atomsOf(words[0]) {
		if letter == '.' { // starts another component, as in a salt
			m.heavy = 0
			continue
		}
		m.count(string(letter))
	}
	return nil
}

// atomsOf returns one letter for each atom of a SMILES string, and a dot for each dot.
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
		return mistakef("has no atom with coordinates in line %d: %.40q", number, line)
	}
	element, _, _ := strings.Cut(words[5], ".")
	m.count(element)
	return nil
}

// smilesFault explains why a word is not a SMILES string, or returns "" if its characters
// can form one. It does not check valences or ring closures.
func smilesFault(word string) string {
	depth := 0
	for i := 0; i < len(word); i++ {
		rest := word[i:]
		switch {
		case rest[0] == '[':
			end := strings.IndexByte(rest, ']')
			if end < 2 {
				return "which has an empty or unclosed bracket"
			}
			i += end
		case strings.HasPrefix(rest, "Cl") || strings.HasPrefix(rest, "Br"):
			i++
		case rest[0] == '(':
			depth++
		case rest[0] == ')':
			if depth--; depth < 0 {
				return "which has an unmatched closing parenthesis"
			}
		case strings.IndexByte("BCNOPSFIbcnops*0123456789%-=#$:/\\.~", rest[0]) < 0:
			return "in which letter " + strconv.Itoa(i+1) + " is not an atom, bond or ring; write other elements in brackets"
		}
	}
	if depth > 0 {
		return "which has an unclosed parenthesis"
	}
	return ""
}

// mol reads a line of a MOL or SDF file. Records end with $$$$.
func (m *molecules) mol(line string, number int) error {
	if strings.HasPrefix(line, "$$$$") {
		broken := m.line > 0 && m.line < 4 || m.left != 0
		m.line, m.left, m.heavy, m.inAtoms, m.before = 0, 0, 0, false, ""
		if broken {
			return mistakef("has a truncated molecule in line %d", number)
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
		return mistakef("has no atom count in line %d, the fourth line of a molecule: %.40q", number, line)
	case strings.HasPrefix(line, "M  V30 "):
		return m.v3000(line[len("M  V30 "):], number)
	case m.left > 0:
		m.left--
		if len(line) < 34 || !isCoordinate(line[:10]) || !isCoordinate(line[10:20]) || !isCoordinate(line[20:30]) {
			return mistakef("has no atom with coordinates in line %d: %.40q", number, line)
		}
		m.count(strings.TrimSpace(line[31:34]))
	}
	return nil
}

// unknown is the value of left in a V3000 molecule before its COUNTS line.
const unknown = -1

// counted reads the number of atoms in a molecule.
func (m *molecules) counted(text string, number int) error {
	atoms, err := strconv.Atoi(strings.TrimSpace(text))
	switch {
	case err != nil || atoms < 0:
		return mistakef("has no atom count in line %d: %.40q", number, text)
	case atoms == 0:
		return mistakef("has a molecule without atoms, at line %d", number)
	case m.want.MaxAtoms > 0 && atoms > m.want.MaxAtoms:
		return mistakef("has a molecule of %d atoms, at line %d; the maximum is %d", atoms, number, m.want.MaxAtoms)
	}
	m.left = atoms
	return nil
}

// longest limits the length of a continued V3000 line.
const longest = 10_000

// v3000 reads a V3000 line. A line that ends with a hyphen continues on the next one.
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
		return mistakef("has no atom with coordinates in line %d: %.40q", number, line)
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
		return mistakef("ends in line %d, but the last molecule has more or fewer atoms than its header declares", number)
	}
	m.want.found.Facts["records"], m.want.found.Facts["largest"] = float64(m.records), float64(m.largest)
	least := m.want.MinRecords
	if !m.want.Tolerant {
		least = max(1, least)
	}
	return within(m.records, least, m.want.MaxRecords, "molecule")
}

// checkTable reads a delimited text file.
func checkTable(f *os.File, want Want) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return mistakef("is empty")
	}
	text := plaintext.NewReader(io.NewSectionReader(f, 0, info.Size()))
	all := bufio.NewReader(text)
	begin, _ := all.Peek(len("sep=")) // io.Copy returns the error
	excel := strings.EqualFold(string(begin), "sep=")
	if _, err := io.Copy(io.Discard, all); err != nil {
		return err
	}
	switch {
	case text.Wide:
		return mistakef("is UTF-16 (Excel's \"Unicode Text\"), which programs can't read: save it as CSV UTF-8")
	case text.Returns:
		return mistakef(returns)
	case excel:
		return mistakef("begins with a sep= line for Excel, which programs would read as the header: remove it")
	}
	var at io.ReaderAt = f
	t, err := tables.Open(at, info.Size(), info.Name(), true)
	if err != nil {
		return faultOf(err)
	}
	var mistakes []error
	for _, name := range want.Columns {
		if !slices.Contains(t.Columns, name) {
			mistakes = append(mistakes, mistakef("has no column %q; it has %s", name, strings.Join(t.Columns[:min(len(t.Columns), 20)], ", ")))
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

// faultOf converts an error in the table to a Mistake.
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
