package atoms

import (
	"fmt"
	"strings"
)

// table is the loop of atoms in an mmCIF file.
type table struct {
	columns map[string]int
	begun   bool
	ended   bool
	cells   []string // of the last row

	places                                   [3]int
	model, residue, chain, number, insertion []int // columns; the first with a value counts
	atom, alternate, element, group          []int
}

// coordinates are the columns that a row has to have.
var coordinates = [3]string{"Cartn_x", "Cartn_y", "Cartn_z"}

func (t *table) name(line string) {
	name, _, _ := strings.Cut(strings.TrimPrefix(line, "_atom_site."), " ")
	t.columns[strings.TrimSpace(name)] = len(t.columns)
}

// begin finds the columns of sites.
func (t *table) begin() {
	t.begun = true
	for k, name := range coordinates {
		t.places[k] = -1
		if i, ok := t.columns[name]; ok {
			t.places[k] = i
		}
	}
	t.model, t.insertion = t.of("pdbx_PDB_model_num"), t.of("pdbx_PDB_ins_code")
	t.residue, t.chain = t.of("auth_comp_id", "label_comp_id"), t.of("auth_asym_id", "label_asym_id")
	t.number, t.atom = t.of("auth_seq_id", "label_seq_id"), t.of("auth_atom_id", "label_atom_id")
	t.alternate, t.element, t.group = t.of("label_alt_id"), t.of("type_symbol"), t.of("group_PDB")
}

// of returns those of the columns that there are.
func (t *table) of(names ...string) (columns []int) {
	for _, name := range names {
		if i, ok := t.columns[name]; ok {
			columns = append(columns, i)
		}
	}
	return columns
}

// cell returns the first value in some columns, "" if none has one.
func (t *table) cell(columns []int) string {
	for _, i := range columns {
		if c := t.cells[i]; c != "." && c != "?" {
			return c
		}
	}
	return ""
}

// value returns the value in a column, "" if there is none.
func (t *table) value(name string) string {
	if i, ok := t.columns[name]; ok {
		return t.cell([]int{i})
	}
	return ""
}

// row reads a line of the loop.
func (r *Reader) row(line string, number int) (s Site, ok bool, err error) {
	t := r.table
	if !t.begun && strings.HasPrefix(line, "_atom_site.") {
		t.name(line)
		return s, false, nil
	}
	if line == "" || line[0] == '#' || line[0] == '_' || strings.HasPrefix(line, "loop_") || strings.HasPrefix(line, "data_") {
		t.ended = t.begun
		r.Ended = r.Ended || t.ended
		return s, false, nil
	}
	if !t.begun {
		t.begin()
	}
	if t.cells = cells(t.cells[:0], line); len(t.cells) != len(t.columns) {
		return s, false, fmt.Errorf("has %d values in line %d, where the table of atoms has %d columns", len(t.cells), number, len(t.columns))
	}
	if model := t.cell(t.model); r.Models == 0 || model != r.model {
		r.Models++
		r.Ended = r.Models > 1
		r.model = model
	}
	s, err = t.site(number)
	return s, err == nil && !r.Ended, err
}

func (t *table) site(number int) (s Site, err error) {
	for k, i := range t.places {
		text, ok := "", false
		if i >= 0 {
			text = t.cells[i]
		}
		if s.Place[k], ok = Coordinate(text); !ok {
			return s, fmt.Errorf("has no coordinate %s in line %d, but %q", coordinates[k], number, text)
		}
	}
	s.Name, s.Alternate, s.Element = t.cell(t.atom), t.cell(t.alternate), strings.ToUpper(t.cell(t.element))
	s.Hetero = t.cell(t.group) == "HETATM"
	s.Residue = Residue{t.cell(t.residue), t.cell(t.chain), t.cell(t.number), t.cell(t.insertion)}
	return s, nil
}

// atomAt returns the atom of the last row.
func (t *table) atomAt(s Site, number int) (*Atom, error) {
	a, ok := s.atom()
	if !ok {
		return nil, fmt.Errorf("has no residue number in line %d, but %q", number, s.Residue.Number)
	}
	if v, ok := Coordinate(t.value("occupancy")); ok {
		a.Occupancy = v
	}
	a.B, _ = Coordinate(t.value("B_iso_or_equiv"))
	return a, nil
}

// cells appends the parts of a line, split at blanks that are not within quotes.
func cells(all []string, line string) []string {
	const blanks = " \t"
	for line = strings.TrimLeft(line, blanks); line != ""; line = strings.TrimLeft(line, blanks) {
		quote := line[0]
		if quote != '\'' && quote != '"' {
			end := strings.IndexAny(line, blanks)
			if end < 0 {
				end = len(line)
			}
			all, line = append(all, line[:end]), line[end:]
			continue
		}
		end := 1
		for end < len(line) && (line[end] != quote || end+1 < len(line) && !strings.ContainsRune(blanks, rune(line[end+1]))) {
			end++ // a quote ends at one that a blank follows
		}
		all, line = append(all, line[1:end]), line[min(end+1, len(line)):]
	}
	return all
}
