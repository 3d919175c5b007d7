package content

import (
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"molrun/app/atoms"
	"molrun/app/tables"
)

// checkMolecules reads an SDF, MOL or MOL2 file, or lines of SMILES.
func checkMolecules(text *lines, want Want) error {
	m := molecules{want: want}
	for line, ok := text.next(); ok; line, ok = text.next() {
		if err := text.plain(line); err != nil {
			return err
		}
		if err := m.read(line, text.number); err != nil {
			return err
		}
	}
	if err := text.err(); err != nil {
		return err
	}
	return m.end(text.number)
}

// molecules reads the records of a file of small molecules. The first lines tell the
// format: the fourth of a MOL or SDF file ends with its version.
type molecules struct {
	want    Want
	head    []string // the first lines
	format  string   // mol, mol2, smiles
	records int
	line    int // within a record of an SDF file, from 1
	left    int // atoms to come
}

func (m *molecules) read(line string, number int) error {
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
		m.format = "smiles"
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
		if err := m.record(line, number-len(head)+1+i); err != nil {
			return err
		}
	}
	return nil
}

func (m *molecules) record(line string, number int) error {
	switch m.format {
	case "mol2":
		if strings.HasPrefix(line, "@<TRIPOS>MOLECULE") {
			m.records++
		}
		return nil
	case "smiles":
		return m.smiles(line, number)
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
		if m.line > 0 && m.line < 4 || m.left > 0 {
			return wrong("has a molecule that breaks off in line %d", number)
		}
		m.line = 0
		return nil
	}
	m.line++
	switch {
	case m.line == 4 && strings.HasSuffix(line, "V3000"):
		m.records++
	case m.line == 4:
		atoms, err := strconv.Atoi(strings.TrimSpace(line[:min(3, len(line))]))
		if err != nil || !strings.HasSuffix(line, "V2000") {
			return wrong("has no count of atoms in line %d, the fourth of a molecule, but %.40q", number, line)
		}
		if atoms == 0 {
			return wrong("has a molecule without atoms, at line %d", number)
		}
		if m.want.MaxAtoms > 0 && atoms > m.want.MaxAtoms {
			return wrong("has a molecule of %d atoms, at line %d; at most %d can be used", atoms, number, m.want.MaxAtoms)
		}
		m.records++
		m.left = atoms
	case m.left > 0:
		m.left--
		if len(line) < 34 || !isCoordinate(line[:10]) || !isCoordinate(line[10:20]) || !isCoordinate(line[20:30]) {
			return wrong("has no atom with coordinates in line %d, but %.40q", number, line)
		}
	}
	return nil
}

func (m *molecules) end(number int) error {
	if m.format == "" {
		m.format = "smiles"
		if err := m.replay(number); err != nil {
			return err
		}
	}
	if m.left > 0 {
		return wrong("breaks off: %d atoms of the last molecule are missing", m.left)
	}
	m.want.found["records"] = float64(m.records)
	return within(m.records, max(1, m.want.MinRecords), m.want.MaxRecords, "molecule")
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
	var at io.ReaderAt = f
	t, err := tables.Open(at, info.Size(), info.Name(), true)
	if err != nil {
		return faultOf(err)
	}
	var all []error
	for _, name := range want.Columns {
		if !slices.Contains(t.Columns, name) {
			all = append(all, wrong("has no column %q; it has %s", name, strings.Join(t.Columns[:min(len(t.Columns), 20)], ", ")))
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
	want.found["records"] = float64(n)
	return errors.Join(append(all, within(n, max(1, want.MinRecords), want.MaxRecords, "row"))...)
}

// faultOf returns a mistake of the table as one of the file.
func faultOf(err error) error {
	if mistake, ok := errors.AsType[tables.Error](err); ok {
		return Mistake(mistake)
	}
	return err
}

func isCoordinate(text string) bool {
	_, ok := atoms.Coordinate(text)
	return ok
}
