package structure

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// cif splits an mmCIF file into tags, values and reserved words such as loop_. Line ends
// count as blanks, except in text fields between lines that start with a semicolon.
type cif struct {
	reader *Reader
	number int      // line number
	text   []string // lines of an unfinished text field
	begun  int      // line in which the text field starts
	head   bool     // the tags of a loop are being read
	table  *table   // the table being read
}

// beginsCIF reports whether a line belongs to an mmCIF file.
func beginsCIF(line string) bool {
	word, _, _ := cutToken(line)
	return isWord(word) || strings.HasPrefix(word, "_") && strings.Contains(word, ".")
}

// isWord reports whether an unquoted token is a reserved word of the format.
func isWord(text string) bool {
	if len(text) < 5 || text[4] != '_' && !strings.EqualFold(text, "global_") {
		return false
	}
	switch strings.ToLower(text[:5]) {
	case "data_", "save_":
		return true
	case "loop_", "stop_":
		return len(text) == 5
	}
	return len(text) == len("global_")
}

// cutToken returns the first token of a line, which ends at a blank, and the rest. A
// quoted token ends at a quote that is followed by a blank.
func cutToken(line string) (part, rest string, quoted bool) {
	for line != "" && isBlank(line[0]) {
		line = line[1:]
	}
	if line == "" || line[0] == '#' {
		return "", "", false
	}
	if quote := line[0]; quote == '\'' || quote == '"' {
		for end := 1; end < len(line); end++ {
			if line[end] == quote && (end+1 == len(line) || isBlank(line[end+1])) {
				return line[1:end], line[end+1:], true
			}
		}
		return line, "", false // the quote is not closed
	}
	end := 0
	for end < len(line) && !isBlank(line[end]) {
		end++
	}
	return line[:end], line[end:], false
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func (c *cif) line(line string, number int) error {
	c.number = number
	if c.text != nil || strings.HasPrefix(line, ";") {
		closed, err := c.textLine(line)
		if !closed || err != nil {
			return err
		}
		line = line[1:]
	}
	for {
		part, rest, quoted := cutToken(line)
		if part == "" && !quoted {
			break
		}
		if err := c.readToken(part, quoted); err != nil {
			return err
		}
		line = rest
	}
	if t := c.table; t != nil && !t.single && len(t.cells) > 0 && t.uneven == 0 {
		t.uneven = number
	}
	return nil
}

// textLine reads a line of a text field, and reports whether the line ends it.
func (c *cif) textLine(line string) (closed bool, err error) {
	switch {
	case c.text == nil:
		c.text, c.begun = []string{line[1:]}, c.number
		return false, nil
	case !strings.HasPrefix(line, ";"):
		if c.table != nil {
			c.text = append(c.text, line)
		}
		return false, nil
	}
	text := strings.Join(c.text, "\n")
	c.text = nil
	return true, c.value(text)
}

func (c *cif) readToken(part string, quoted bool) error {
	switch {
	case quoted:
		return c.value(part)
	case part[0] == '_':
		return c.tag(strings.ToLower(part))
	case isWord(part):
		err := c.close()
		c.head = strings.EqualFold(part, "loop_")
		return err
	case part == "." || part == "?":
		return c.value("")
	case c.table != nil && (part[0] == '\'' || part[0] == '"'):
		return fmt.Errorf("has an unclosed quote in line %d: add the same quote after the value", c.number)
	}
	return c.value(part)
}

// tag reads the name of a column, or of a value outside a loop.
func (c *cif) tag(tag string) error {
	category, name, _ := strings.Cut(tag, ".")
	known := tables[category] != ""
	if !c.head && (c.table == nil || !c.table.single || category != c.table.category) {
		if err := c.close(); err != nil {
			return err
		}
	}
	if known && c.table == nil {
		if category == atomSite && c.reader.grouper.model.Models > 0 {
			return fmt.Errorf("has a second table of atoms in line %d: put each structure in a separate file", c.number)
		}
		c.table = &table{category: category, columns: map[string]int{}, single: !c.head}
	}
	if c.table == nil {
		return nil
	}
	if category != c.table.category {
		name = tag
	}
	if _, twice := c.table.columns[name]; twice {
		return fmt.Errorf("has the column %s twice in its table of %s, the second time in line %d: remove one", name, tables[c.table.category], c.number)
	}
	c.table.columns[name] = len(c.table.columns)
	return nil
}

const (
	atomSite = "_atom_site"
	entities = "_entity"
)

// tables maps each category that is read to its name in messages.
var tables = map[string]string{atomSite: "atoms", entities: "entities"}

// value reads a value, which is "" if it is unknown.
func (c *cif) value(text string) error {
	c.head = false
	t := c.table
	if t == nil || len(t.cells) == len(t.columns) { // the latter is true after a complete single row
		return nil
	}
	if len(t.cells) == 0 {
		t.number = c.number
	}
	t.cells = append(t.cells, text)
	if t.single || len(t.cells) < len(t.columns) {
		return nil
	}
	return c.row()
}

// checkEnd returns an error if the file is incomplete.
func (c *cif) checkEnd() error {
	if c.text != nil {
		return fmt.Errorf("is truncated: the text that starts with ; in line %d does not end; upload the whole file", c.begun)
	}
	return c.close()
}

// close ends the current table.
func (c *cif) close() error {
	t := c.table
	if t == nil {
		return nil
	}
	if t.single && len(t.cells) == len(t.columns) {
		if err := c.row(); err != nil {
			return err
		}
	}
	if len(t.cells) > 0 && t.category == atomSite {
		return t.wrong("is truncated in line %d: its last atom has %d of %d values", c.number, len(t.cells), len(t.columns))
	}
	c.table = nil
	return nil
}

// row reads the values of a row.
func (c *cif) row() error {
	t := c.table
	if t.rows == 0 {
		t.findColumns()
	}
	t.rows++
	if t.category == entities {
		c.reader.grouper.entity(t.cell(t.entity), strings.ToLower(t.cell(t.kind)))
		t.cells = t.cells[:0]
		return nil
	}
	return c.atom()
}

// atom reads the values of an atom.
func (c *cif) atom() error {
	t, r := c.table, c.reader
	model := t.cell(t.model)
	if t.rows == 1 || model != t.last && !slices.Contains(t.models, model) {
		t.models = append(t.models, model)
		r.grouper.model.Models++
	}
	t.last = model
	err := t.readAtom(&r.row)
	if err == nil && model == t.models[0] {
		r.grouper.addAtom(&r.row, t.cell(t.entity), t.sequenced())
	}
	t.cells = t.cells[:0]
	return err
}

// table is a loop, or a single row of values.
type table struct {
	category string
	columns  map[string]int
	single   bool
	cells    []string // of the row being read
	number   int      // line in which that row starts
	uneven   int      // the first line that does not end a row
	rows     int
	models   []string
	last     string // model of the last atom

	places                                          [3]int
	model, residue, chain, residueNumber, insertion []int // columns; the first one with a value counts
	name, alternate, element, group, occupancy, b   []int
	entity, kind, sequence                          []int
}

// coordinates are the columns that every row must have.
var coordinates = [3]string{"Cartn_x", "Cartn_y", "Cartn_z"}

// findColumns looks up the columns of the table.
func (t *table) findColumns() {
	if t.category == entities {
		t.entity, t.kind = t.columnsNamed("id"), t.columnsNamed("type")
		return
	}
	for k, name := range coordinates {
		t.places[k] = -1
		if i, ok := t.columns[strings.ToLower(name)]; ok {
			t.places[k] = i
		}
	}
	t.model, t.insertion = t.columnsNamed("pdbx_pdb_model_num"), t.columnsNamed("pdbx_pdb_ins_code")
	t.residue, t.chain = t.columnsNamed("auth_comp_id", "label_comp_id"), t.columnsNamed("auth_asym_id", "label_asym_id")
	t.residueNumber, t.name = t.columnsNamed("auth_seq_id", "label_seq_id"), t.columnsNamed("auth_atom_id", "label_atom_id")
	t.alternate, t.element, t.group = t.columnsNamed("label_alt_id"), t.columnsNamed("type_symbol"), t.columnsNamed("group_pdb")
	t.occupancy, t.b = t.columnsNamed("occupancy"), t.columnsNamed("b_iso_or_equiv")
	t.entity, t.sequence = t.columnsNamed("label_entity_id"), t.columnsNamed("label_seq_id")
}

// columnsNamed returns the columns with these names that exist.
func (t *table) columnsNamed(names ...string) (columns []int) {
	for _, name := range names {
		if i, ok := t.columns[name]; ok {
			columns = append(columns, i)
		}
	}
	return columns
}

// cell returns the first value in these columns, or "" if none has one.
func (t *table) cell(columns []int) string {
	for _, i := range columns {
		if c := t.cells[i]; c != "" {
			return c
		}
	}
	return ""
}

// readAtom reads the atom of the row.
func (t *table) readAtom(a *row) (err error) {
	group := strings.ToUpper(t.cell(t.group))
	if group != "" && group != "ATOM" && group != "HETATM" {
		return t.wrong("has %q in line %d, where ATOM or HETATM is expected", group, t.number)
	}
	a.Hetero = group == "HETATM"
	for k, i := range t.places {
		text, ok := "", false
		if i >= 0 {
			text = t.cells[i]
		}
		if a.Position[k], ok = Coordinate(text); !ok {
			return t.wrong("has no valid coordinate %s in line %d: %q", coordinates[k], t.number, text)
		}
	}
	if a.residue.Number, err = strconv.Atoi(t.cell(t.residueNumber)); err != nil {
		return t.wrong("has no valid residue number in line %d: %q", t.number, t.cell(t.residueNumber))
	}
	a.Name, a.Alternate, a.Element = t.cell(t.name), t.cell(t.alternate), strings.ToUpper(t.cell(t.element))
	a.residue.Name, a.residue.Chain, a.residue.Insertion = t.cell(t.residue), t.cell(t.chain), t.cell(t.insertion)
	a.occupied(t.cell(t.occupancy), t.cell(t.b))
	return nil
}

// sequenced returns the number of the row's residue in its sequence, -1 if the row has
// none although the table has such numbers, or 0 if it is unknown.
func (t *table) sequenced() int {
	if len(t.sequence) == 0 {
		return 0
	}
	text := t.cells[t.sequence[0]]
	if text == "" {
		return -1
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// wrong returns an error that also says where a row might have lost a value.
func (t *table) wrong(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if t.uneven > 0 {
		text += fmt.Sprintf("; rows of its table of atoms have %d values, and line %d is the first that does not complete one: complete that row, or write the file again", len(t.columns), t.uneven)
	}
	return errors.New(text)
}
