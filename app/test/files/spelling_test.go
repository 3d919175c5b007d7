package files

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
)

// spelling is a generated file, with the description to print if a reader fails.
type spelling struct {
	name    string
	text    []byte
	how     []string // features that not every file has
	foreign bool     // gemmi reads it differently according to the rules in doc.go
	shared  bool     // waters share numbers, so that the viewer joins them
	guessed bool     // nothing in the file tells gemmi where polymers end
	want    counts
}

// chance returns true with probability 1/of, in which case it records how.
func (s *spelling) chance(random *rand.Rand, of int, how string) bool {
	if random.IntN(of) > 0 {
		return false
	}
	s.how = append(s.how, how)
	return true
}

// spell writes a structure in one of many possible ways.
func spell(m *molecules, number int) *spelling {
	r := m.random
	s := &spelling{want: m.want}
	var text string
	if r.IntN(2) == 0 {
		s.name = fmt.Sprintf("%d.pdb", number)
		text = s.pdb(m)
	} else {
		s.name = fmt.Sprintf("%d.cif", number)
		text = s.cif(m)
	}
	switch {
	case s.chance(r, 5, "CRLF"):
		text = strings.ReplaceAll(text, "\n", "\r\n")
	case s.chance(r, 12, "CR"):
		text = strings.ReplaceAll(text, "\n", "\r")
		s.foreign = true
	}
	switch {
	case s.chance(r, 10, "byte order mark"):
		text = "\uFEFF" + text
		s.foreign = true
	case s.chance(r, 20, "UTF-16"):
		text = wide(text, r.IntN(2) == 0)
		s.foreign = true
	}
	s.text = []byte(text)
	if s.chance(r, 8, "gzip") {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(s.text) // a bytes.Buffer cannot fail
		_ = w.Close()
		s.text = b.Bytes()
		if !s.chance(r, 2, "without a name for it") {
			s.name += ".gz"
		} else {
			s.foreign = true
		}
	}
	return s
}

// wide encodes a string in UTF-16 with a byte order mark.
func wide(text string, little bool) string {
	var order binary.AppendByteOrder = binary.BigEndian
	if little {
		order = binary.LittleEndian
	}
	var all []byte
	for _, unit := range utf16.Encode([]rune("\uFEFF" + text)) {
		all = order.AppendUint16(all, unit)
	}
	return string(all)
}

var record = regexp.MustCompile(`(?m)^[A-Z]{3,6}\b`)

// pdb returns the structure as a PDB file.
func (s *spelling) pdb(m *molecules) string {
	r := m.random
	var out strings.Builder
	if s.chance(r, 2, "header") {
		out.WriteString("HEADER    HYDROLASE                               01-JAN-20   1XYZ\n")
	}
	if s.chance(r, 4, "Latin-1 in a remark") {
		out.WriteString("REMARK   2 T = 25 \xb0C, F\xe9lix\n")
	}
	atoms := slices.Clone(m.atoms)
	s.renumber(r, atoms)
	if s.chance(r, 8, "waters that share numbers") {
		s.foreign, s.shared = true, true
		share(atoms)
	}
	ter := !s.chance(r, 8, "no TER")
	s.guessed = !ter
	blank := ter && s.chance(r, 8, "chains without names")
	s.foreign = s.foreign || blank && m.want.Chains > 1
	models, words := 1, r.IntN(3)
	if s.chance(r, 4, "models") {
		models += 1 + r.IntN(3)
	}
	s.want.Models = models
	if models > 1 && words == 0 {
		s.how = append(s.how, "END between models")
		s.foreign = true
	}
	ends := []string{"      ", "  "}
	if s.chance(r, 6, "segments and charges") {
		ends = []string{"  SEGA", "1+"}
	}
	serial := 1
	if s.chance(r, 6, "numbers of six digits") {
		serial = 99_990
	}
	shifts := serial > 1 && s.chance(r, 2, "which shift columns")
	s.foreign = s.foreign || shifts
	width := []int{80, 78, 66, 60, 54}[r.IntN(5)]
	for k := range models {
		if models > 1 && words > 0 {
			fmt.Fprintf(&out, "MODEL     %4d\n", k+1)
		}
		for _, a := range atoms {
			line := pdbLine(a, serial, shifts, blank, ends)
			serial++
			out.WriteString(strings.TrimRight(line[:min(len(line), width+max(0, len(line)-80))], " ") + "\n")
			if a.last && ter {
				out.WriteString([]string{"TER\n", "TER                                                     \n", fmt.Sprintf("TER   %5d      %3s %s%4d\n", serial%100_000, a.residue, a.chain, a.number%10_000)}[r.IntN(3)])
			}
			if r.IntN(200) == 0 {
				out.WriteString([]string{"ANISOU    1  N   ALA A   1     2406   1892   1614    198    519   -328       N\n", "REMARK loop_ data_x\n", "SIGATM\n", "\n"}[r.IntN(4)])
			}
		}
		switch {
		case models > 1 && words == 0:
			out.WriteString("END\n")
		case models > 1:
			out.WriteString("ENDMDL\n")
		}
	}
	if s.chance(r, 2, "END") && !strings.HasSuffix(out.String(), "END\n") {
		out.WriteString("CONECT    1    2\nMASTER        0    0    0    0    0    0    0    0\nEND\n")
	}
	if s.chance(r, 12, "records in lower case") {
		return record.ReplaceAllStringFunc(out.String(), strings.ToLower)
	}
	return out.String()
}

// renumber gives the residues of some files numbers that are too large for their columns.
func (s *spelling) renumber(r *rand.Rand, atoms []atom) {
	if !s.chance(r, 5, "residues beyond 9999") {
		return
	}
	for k := range atoms {
		atoms[k].number += 9_990
	}
}

// share gives all waters one of a few numbers.
func share(atoms []atom) {
	for k := range atoms {
		if atoms[k].entity() == "3" {
			atoms[k].number = 500 + atoms[k].number%3
		}
	}
}

// pdbLine formats an atom, with a serial number of five columns or more.
func pdbLine(a atom, serial int, shifts, blank bool, ends []string) string {
	record, name, chain, number := "ATOM  ", a.name, a.chain, fmt.Sprintf("%4d", a.number)
	if a.hetero {
		record = "HETATM"
	}
	if len(a.element) < 2 && len(name) < 4 {
		name = " " + name
	}
	if blank {
		chain = " "
	}
	if a.number > 9999 {
		number = hybrid(a.number)
	}
	text := fmt.Sprintf("%5d ", serial)
	if serial > 99_999 && !shifts {
		text = fmt.Sprintf("%d", serial) // also takes the blank column that follows
	}
	return fmt.Sprintf("%s%s%-4s%1s%3s %1s%4s%1s   %8.3f%8.3f%8.3f%6.2f%6.2f    %s%2s%s",
		record, text, name, a.alternate, a.residue, chain, number, a.insertion, a.place[0], a.place[1], a.place[2], a.occupancy(), 20.0, ends[0], a.element, ends[1])
}

func (a *atom) occupancy() float64 { return map[string]float64{"": 1, "A": 0.6, "B": 0.4}[a.alternate] }

// hybrid encodes a number of at least 10,000 in four columns, as hybrid-36 does.
func hybrid(number int) string {
	n := number - 10_000 + 10*36*36*36
	digits := "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return string([]byte{digits[n/36/36/36], digits[n/36/36%36], digits[n/36%36], digits[n%36]})
}

// cif returns the structure as an mmCIF file.
func (s *spelling) cif(m *molecules) string {
	r := m.random
	c := &cifWriter{spelling: s, random: r, upper: s.chance(r, 4, "tags in upper case"), mixed: s.chance(r, 6, "tags in any case"), wraps: s.chance(r, 4, "wrapped rows"), tabs: s.chance(r, 6, "tabs"), joins: s.chance(r, 6, "rows in one line"), quotes: s.chance(r, 3, "quotes")}
	atoms := slices.Clone(m.atoms)
	s.renumber(r, atoms)
	if s.chance(r, 8, "waters that share numbers") {
		s.foreign, s.shared = true, true
		share(atoms)
	}
	models := 1
	if s.chance(r, 4, "models") {
		models += 1 + r.IntN(3)
	}
	s.want.Models = models
	c.line("data_" + []string{"X", "1ABC", "loop"}[r.IntN(3)])
	if s.chance(r, 3, "other tables before") {
		c.line("_cell.length_a 10\nloop_\n_audit_author.name\n_audit_author.pdbx_ordinal\n'O''Brien, A.' 1\n\"data_x loop_\" 2\n_struct.title\n;ATOM\n_atom_site.id\n;\n#")
	}
	entities := s.chance(r, 2, "entities")
	s.guessed = !entities
	behind := entities && s.chance(r, 3, "entities behind the atoms")
	if entities && !behind {
		c.entities()
	}
	c.atoms(atoms, models, entities)
	if behind {
		c.entities()
	}
	if s.chance(r, 3, "other tables behind") {
		c.line("loop_\n_atom_type.symbol\nC\nN\n_exptl.method 'X-RAY DIFFRACTION'")
	}
	return c.String()
}

// cifWriter writes tables.
type cifWriter struct {
	strings.Builder
	*spelling
	random                                   *rand.Rand
	upper, mixed, wraps, joins, tabs, quotes bool
}

func (c *cifWriter) line(text string) { c.WriteString(text + "\n") }

func (c *cifWriter) tag(name string) string {
	if c.upper || c.mixed && c.random.IntN(2) == 0 {
		return strings.ToUpper(name)
	}
	return name
}

func (c *cifWriter) entities() {
	c.line("loop_\n" + c.tag("_entity.id") + "\n" + c.tag("_entity.type") + "\n1 polymer\n2 non-polymer\n3 water\n#")
}

// atoms writes the atom table with its columns in random order. Some optional columns are
// left out.
func (c *cifWriter) atoms(atoms []atom, models int, entities bool) {
	columns := strings.Fields("group_PDB id label_atom_id label_comp_id label_asym_id auth_asym_id auth_seq_id Cartn_x Cartn_y Cartn_z occupancy B_iso_or_equiv label_alt_id pdbx_PDB_ins_code type_symbol pdbx_PDB_model_num")
	for optional := range strings.FieldsSeq("auth_comp_id auth_atom_id Cartn_x_esd") {
		if c.random.IntN(2) == 0 {
			columns = append(columns, optional)
		}
	}
	if entities {
		columns = append(columns, "label_entity_id")
	}
	if entities || c.random.IntN(2) == 0 {
		c.how = append(c.how, "numbers in sequences")
		columns = append(columns, "label_seq_id")
	}
	for _, name := range []string{"auth_asym_id", "occupancy", "B_iso_or_equiv", "type_symbol"} {
		if c.chance(c.random, 12, "no "+name) { // gemmi then reads no atoms
			c.foreign = true
			columns = slices.DeleteFunc(columns, func(column string) bool { return column == name })
		}
	}
	if c.chance(c.random, 2, "shuffled columns") {
		c.random.Shuffle(len(columns), func(i, k int) { columns[i], columns[k] = columns[k], columns[i] })
	}
	comments := c.chance(c.random, 4, "comments and blank lines")
	c.line([]string{"loop_", "LOOP_", "loop_ # of atoms"}[c.random.IntN(3)])
	for _, name := range columns {
		c.WriteString(c.tag("_atom_site." + name))
		switch {
		case comments && c.random.IntN(10) == 0:
			c.line(" # _atom_site.x\n")
		case c.joins && c.random.IntN(2) == 0:
			c.WriteString(" ")
		default:
			c.line("")
		}
	}
	if c.joins {
		c.line("")
	}
	serial := 0
	for k := range models {
		for _, a := range atoms {
			serial++
			c.row(a, columns, serial, k+1)
			if comments && c.random.IntN(10) == 0 {
				c.line([]string{"", "# ATOM 1 2 3", "   "}[c.random.IntN(3)])
			}
		}
	}
	c.line("#")
}

func (c *cifWriter) row(a atom, columns []string, serial, model int) {
	for k, column := range columns {
		if k > 0 {
			c.WriteString(c.blank())
		}
		c.WriteString(c.quoted(column, a.value(column, serial, model)))
	}
	if c.joins && c.random.IntN(3) == 0 {
		c.WriteString("  ")
		return
	}
	c.WriteString("\n")
}

func (c *cifWriter) blank() string {
	switch {
	case c.wraps && c.random.IntN(10) == 0:
		return "\n"
	case c.tabs:
		return "\t"
	}
	return []string{" ", "  "}[c.random.IntN(2)]
}

func (c *cifWriter) quoted(column, value string) string {
	switch {
	case strings.Contains(value, "'"):
		return `"` + value + `"`
	case c.quotes && value != "." && value != "?" && c.random.IntN(10) == 0 && (c.foreign || strings.HasPrefix(column, "label_") && column != "label_seq_id" || column == "type_symbol"):
		return []string{"'" + value + "'", `"` + value + `"`, "\n;" + value + "\n;"}[c.random.IntN(3)]
	}
	return value
}

// value returns an atom's value in a column.
func (a *atom) value(column string, serial, model int) string {
	switch column {
	case "group_PDB":
		return map[bool]string{false: "ATOM", true: "HETATM"}[a.hetero]
	case "id":
		return fmt.Sprint(serial)
	case "label_atom_id", "auth_atom_id":
		return a.name
	case "label_comp_id", "auth_comp_id":
		return a.residue
	case "auth_asym_id":
		return a.chain
	case "label_asym_id":
		return a.chain + strings.TrimPrefix(a.entity(), "1")
	case "auth_seq_id":
		return fmt.Sprint(a.number)
	case "Cartn_x", "Cartn_y", "Cartn_z":
		return fmt.Sprintf("%.3f", a.place[column[len(column)-1]-'x'])
	case "label_alt_id":
		return known(a.alternate, ".")
	case "pdbx_PDB_ins_code":
		return known(a.insertion, "?")
	case "type_symbol":
		return known(a.element, "?")
	case "pdbx_PDB_model_num":
		return fmt.Sprint(model)
	case "occupancy":
		return fmt.Sprintf("%.2f", a.occupancy())
	case "B_iso_or_equiv":
		return "20.00"
	case "label_entity_id":
		return a.entity()
	case "label_seq_id":
		return known(strings.TrimPrefix(fmt.Sprint(a.sequence), "0"), ".")
	}
	return "?"
}

func known(value, none string) string {
	if value == "" {
		return none
	}
	return value
}

func (a *atom) entity() string {
	switch {
	case a.sequence > 0:
		return "1"
	case slices.Contains([]string{"HOH", "DOD", "WAT"}, a.residue):
		return "3"
	}
	return "2"
}
