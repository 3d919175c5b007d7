package structure

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"molrun/app/test/must"
)

const pdbFile = `HEADER
MODEL        1
ATOM      1  N   ALA A   1      11.104   6.134  -6.504  1.00 20.50           N
ATOM      2  CA AALA A  -2A     11.639   6.071  -5.147  0.60 12.00
ATOM      3 HG11 VAL B  10       1.000   2.000   3.000
HETATM    4 CA    CA B 201       1.000   2.000   3.000  1.00 30.00
ENDMDL
MODEL        2
ATOM      1  N   ALA A   1      11.104   6.134  -6.504  1.00 20.50           N
ENDMDL
`

const cifFile = `data_X
_cell.length_a 1
loop_
_atom_site.group_PDB
_atom_site.type_symbol
_atom_site.label_atom_id
_atom_site.label_alt_id
_atom_site.label_comp_id
_atom_site.label_asym_id
_atom_site.auth_asym_id
_atom_site.label_seq_id
_atom_site.auth_seq_id
_atom_site.pdbx_PDB_ins_code
_atom_site.Cartn_x
_atom_site.Cartn_y
_atom_site.Cartn_z
_atom_site.occupancy
_atom_site.B_iso_or_equiv
_atom_site.pdbx_PDB_model_num
ATOM N N . ALA A X 1 5 ? 11.104 6.134 -6.504 1.00 20.50 1
HETATM C "C1'" B LIG B Y . 201 C 1 2 3 0.5 9 1
ATOM N N . ALA A X 1 5 ? 11.104 6.134 -6.504 1.00 20.50 2
#
loop_
_other.x
ATOM
`

// line is the content of an atom record.
type line struct {
	Name, Alternate, Residue, Chain string
	Number                          int
	Insertion                       string
	Place                           [3]float64
	Occupancy, B                    float64
	Element                         string
	Hetero                          bool
}

// atomsOf returns the atoms of a file, and the number of its models.
func atomsOf(text string) (all []line, models int, err error) {
	m, err := Read(strings.NewReader(text))
	for _, r := range m.Residues {
		for _, a := range r.Atoms {
			all = append(all, line{a.Name, a.Alternate, r.Name, r.Chain, r.Number, r.Insertion, a.Position, a.Occupancy, a.B, a.Element, a.Hetero})
		}
	}
	return all, m.Models, err
}

func TestRead(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []line
	}{
		"PDB": {pdbFile, []line{
			{Name: "N", Residue: "ALA", Chain: "A", Number: 1, Place: [3]float64{11.104, 6.134, -6.504}, Occupancy: 1, B: 20.5, Element: "N"},
			{Name: "CA", Alternate: "A", Residue: "ALA", Chain: "A", Number: -2, Insertion: "A", Place: [3]float64{11.639, 6.071, -5.147}, Occupancy: 0.6, B: 12, Element: "C"},
			{Name: "HG11", Residue: "VAL", Chain: "B", Number: 10, Place: [3]float64{1, 2, 3}, Occupancy: 1, Element: "H"},
			{Name: "CA", Residue: "CA", Chain: "B", Number: 201, Place: [3]float64{1, 2, 3}, Occupancy: 1, B: 30, Element: "CA", Hetero: true},
		}},
		"mmCIF": {cifFile, []line{
			{Name: "N", Residue: "ALA", Chain: "X", Number: 5, Place: [3]float64{11.104, 6.134, -6.504}, Occupancy: 1, B: 20.5, Element: "N"},
			{Name: "C1'", Alternate: "B", Residue: "LIG", Chain: "Y", Number: 201, Insertion: "C", Place: [3]float64{1, 2, 3}, Occupancy: 0.5, B: 9, Element: "C", Hetero: true},
		}},
	} {
		for _, text := range []string{tt.text, strings.ReplaceAll(tt.text, "\n", "\r\n")} {
			got, models, err := atomsOf(text)
			if err != nil || models != 2 {
				t.Errorf("%s: %d models, %v", name, models, err)
			}
			must.Equal(t, name, got, tt.want)
		}
	}
}

// shortRow ends the error message for a table in which a row has lost values.
const shortRow = "rows of its table of atoms have 16 values, and line 21 is the first that does not complete one: complete that row, or write the file again"

func TestMistakesNameTheLine(t *testing.T) {
	good := strings.Split(pdbFile, "\n")[2]
	for text, want := range map[string]string{
		"\n" + good[:50]: "is truncated in line 2: atom records of a PDB file have coordinates in columns 31 to 54",
		strings.Replace(good, "ATOM  ", "ATOM ", 1):   "has its columns shifted by one in line 1: atom records of a PDB file have coordinates in columns 31 to 54",
		strings.Replace(good, "  1  N", "  1   N", 1): "has its columns shifted by one in line 1: atom records of a PDB file have coordinates in columns 31 to 54",
		" " + good: "has leading blanks before the atom in line 1: atom records of a PDB file start in the first column",
		strings.Replace(good, "ATOM  ", "ATOM\t", 1):      "has a tab in line 1: a PDB file has fixed-width columns, so use blanks",
		strings.Replace(good, " 6.134", "*.****", 1):      `has no valid coordinate in columns 39 to 46 of line 1: "  *.****"`,
		strings.Replace(good, "6.134", "  NaN", 1):        `has no valid coordinate in columns 39 to 46 of line 1: "     NaN"`,
		strings.Replace(good, "A   1 ", "A   x ", 1):      `has no valid residue number in columns 23 to 26 of line 1: "   x"; above 9999, use mmCIF or hybrid-36 (A000)`,
		strings.Replace(cifFile, "11.104", "?", 1):        `has no valid coordinate Cartn_x in line 20: ""`,
		strings.Replace(cifFile, "A X 1 5", "A X . .", 1): `has no valid residue number in line 20: ""`,

		strings.Replace(cifFile, " 20.50 1\n", " 20.50\n", 1):                  `has "C" in line 21, where ATOM or HETATM is expected; ` + strings.Replace(shortRow, "line 21", "line 20", 1),
		strings.Replace(cifFile, " 3 0.5 9 1\n", " 3 0.5 9\n", 1):              "is truncated in line 24: its last atom has 15 of 16 values; " + shortRow,
		strings.Replace(cifFile, " 1.00 20.50 2\n", " 1.00 20.50\n", 1):        "is truncated in line 24: its last atom has 15 of 16 values; " + strings.Replace(shortRow, "line 21", "line 22", 1),
		strings.Replace(cifFile, "#\nloop_", "ATOM\n#\nloop_", 1):              "is truncated in line 25: its last atom has 1 of 16 values; " + strings.Replace(shortRow, "line 21", "line 23", 1),
		strings.Replace(cifFile, "\"C1'\" B", "\"C1' B", 1):                    "has an unclosed quote in line 21: add the same quote after the value",
		strings.Replace(cifFile, ".Cartn_y", ".cartn_X", 1):                    "has the column cartn_x twice in its table of atoms, the second time in line 15: remove one",
		cifFile + "_struct.title\n;a\n":                                        "is truncated: the text that starts with ; in line 28 does not end; upload the whole file",
		cifFile + "data_Y\n" + cifFile:                                         "has a second table of atoms in line 31: put each structure in a separate file",
		"data_x\n_atom_site.Cartn_x 1\n_atom_site.Cartn_y\n_cell.length_a 1\n": "is truncated in line 4: its last atom has 1 of 2 values",
	} {
		_, err := Read(strings.NewReader(text))
		if err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// TestEndsOfLinesAreBlanksInCIF reads the same file in various layouts that CIF allows.
func TestEndsOfLinesAreBlanksInCIF(t *testing.T) {
	read := func(text string) (all []line, models int) {
		t.Helper()
		all, models, err := atomsOf(text)
		if err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
		return all, models
	}
	want, _ := read(cifFile)
	row := "ATOM N N . ALA A X 1 5 ? 11.104 6.134 -6.504 1.00 20.50 1\n"
	begin, rows := strings.Index(cifFile, "loop_"), strings.Index(cifFile, row)
	for name, text := range map[string]string{
		"a comment between rows":   strings.Replace(cifFile, row, row+"# the ligand\n", 1),
		"a comment behind a row":   strings.Replace(cifFile, row, strings.TrimSuffix(row, "\n")+" # ATOM 1\n", 1),
		"blank lines":              strings.ReplaceAll(cifFile, "\n", "\n \t\n\n"),
		"tags in upper case":       strings.Replace(cifFile, cifFile[begin:rows], strings.ToUpper(cifFile[begin:rows]), 1),
		"wrapped rows":             cifFile[:rows] + strings.ReplaceAll(cifFile[rows:], " . ", "\n.\n"),
		"rows in one line":         strings.Replace(cifFile, row, strings.TrimSuffix(row, "\n")+"\t", 1),
		"tags in one line":         cifFile[:begin] + strings.ReplaceAll(cifFile[begin:rows], "\n", " ") + cifFile[rows:],
		"indented":                 strings.ReplaceAll(cifFile, "\n", "\n  "),
		"tabs":                     strings.ReplaceAll(cifFile, " ", "\t"),
		"a text within a row":      strings.Replace(cifFile, " ALA A X 1 5", "\n;ALA\n; A X 1 5", 1),
		"quotes":                   strings.Replace(cifFile, " ALA A X 1 5", ` 'ALA' "A" X '1' 5`, 1),
		"atoms within a text":      "data_Y\n_x.y\n;\n" + pdbFile + cifFile + ";\n" + cifFile,
		"loop_ in quotes":          "data_Y\n_x.y 'loop_ _atom_site.id'\n" + cifFile,
		"a hash in a value":        "data_Y\n_x.y a#b _x.z 'c # d'\n" + cifFile,
		"a block without atoms":    "data_Y\nloop_\n_x.y\n1 2 3\n\n" + cifFile,
		"a long line":              "data_Y\n_x.y " + strings.Repeat("y", 100_000) + "\n" + cifFile,
		"no end of the last line":  strings.TrimSuffix(cifFile, "\n"),
		"byte order mark":          "\uFEFF" + cifFile,
		"carriage returns":         strings.ReplaceAll(cifFile, "\n", "\r"),
		"both kinds of line ends":  strings.Replace(strings.ReplaceAll(cifFile, "\n", "\r\n"), "\r\n", "\r", 25),
		"LOOP_ and DATA_":          strings.NewReplacer("loop_", "LOOP_", "data_", "Data_").Replace(cifFile),
		"a save frame behind":      cifFile + "\nsave_x\n_y.z 1\nsave_\n",
		"models one after another": strings.Replace(cifFile, row, row+strings.Replace(row, " 1\n", " 2\n", 1), 1),
	} {
		got, models := read(text)
		if diff := cmp.Diff(want, got); diff != "" || models != 2 {
			t.Errorf("%s: %d models, %s", name, models, diff)
		}
	}

	quoted := strings.NewReplacer(" A X 1 5", ` A "_X" 1 5`, " B Y .", " B loop_# .").Replace(cifFile)
	if got, _ := read(quoted); got[0].Chain != "_X" || got[1].Chain != "loop_#" {
		t.Error(got)
	}
	single := "data_x _atom_site.group_PDB ATOM\n_atom_site.label_atom_id \"O'\"\n_atom_site.auth_seq_id 7 _atom_site.Cartn_x 1\n_atom_site.Cartn_y\n2\n_atom_site.Cartn_z 3\n_cell.length_a 1\n"
	got, models := read(single)
	if diff := cmp.Diff([]line{{Name: "O'", Number: 7, Place: [3]float64{1, 2, 3}, Occupancy: 1}}, got); diff != "" || models != 1 {
		t.Errorf("a single atom: %d models, %s", models, diff)
	}
}

func TestPDBOfAllSystems(t *testing.T) {
	want, _, err := atomsOf(pdbFile)
	must.OK(t, err)
	pdbFile := strings.TrimPrefix(pdbFile, "HEADER\nMODEL        1\n")
	for name, text := range map[string]string{
		"byte order mark":         "\uFEFF" + pdbFile,
		"carriage returns":        strings.ReplaceAll(pdbFile, "\n", "\r"),
		"both kinds of line ends": strings.Replace(strings.ReplaceAll(pdbFile, "\n", "\r\n"), "\r\n", "\r", 2),
		"a ruler":                 "REMARK loop_\n________\n" + pdbFile + "data_x\n_atom_site.id\n",
		"a broken later model":    strings.Replace(pdbFile, "MODEL        2\n", "MODEL        2\nATOM  \n", 1),
	} {
		got, models, err := atomsOf(text)
		if diff := cmp.Diff(want, got); diff != "" || models != 2 || err != nil {
			t.Errorf("%s: %d models, %v, %s", name, models, err, diff)
		}
	}
}

// TestResidueNumbersBeyondColumns reads hybrid-36 numbers, with values from the reference
// implementation (cctbx, hybrid_36.py).
func TestResidueNumbersBeyondColumns(t *testing.T) {
	read := func(text string) (int, bool) { return (&columns{}).readNumber(text) }
	for text, want := range map[string]int{"  12": 12, " -12": -12, "9999": 9999, "A000": 10_000, "A00A": 10_010, "ZZZZ": 1_223_055, "a000": 1_223_056, "zzzz": 2_436_111} {
		if got, ok := read(text); got != want || !ok {
			t.Errorf("%s: %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"    ", "27_a", "Aa00", "A-00", "A_00", "A 00", " A00", "*000"} {
		if got, ok := read(text); ok {
			t.Errorf("%s: %d", text, got)
		}
	}
}

// TestHexadecimalResidueNumbers continues numbers above ten thousand in the same chain
// and in the next one.
func TestHexadecimalResidueNumbers(t *testing.T) {
	var n columns
	var got []int
	for _, text := range []string{"9999", "2710", "2711", "2719", "271a", "2720", "9FFF", "A000", "FFFF", "   1", "9998", "A000"} {
		v, ok := n.readNumber(text)
		if !ok {
			t.Fatal(text)
		}
		got = append(got, v)
	}
	must.Equal(t, "numbers", got, []int{9999, 10_000, 10_001, 10_009, 10_010, 10_016, 0x9fff, 0xa000, 0xffff, 1, 9998, 10_000})
}

func TestPDBOfOtherPrograms(t *testing.T) {
	atom := strings.Split(pdbFile, "\n")[2]
	want, _, err := atomsOf(atom)
	must.OK(t, err)
	for name, line := range map[string]string{
		"a number of six digits, shifted":     "ATOM  100000" + atom[11:],
		"a number of seven digits, shifted":   "ATOM  1000000" + atom[11:],
		"a number of six digits in column 12": "ATOM  100000" + atom[12:],
		"a number of six digits in column 6":  "ATOM 100000" + atom[11:],
		"a number that is starred":            "ATOM  *****" + atom[11:],
		"lower case":                          "atom" + atom[4:],
		"a charge behind the element":         atom + "1+",
		"no element":                          atom[:66],
		"four decimals":                       atom[:30] + " 11.1040  6.1340 -6.5040" + atom[54:],
		"zeroes in front":                     atom[:30] + "0011.104" + atom[38:],
	} {
		got, _, err := atomsOf(line)
		must.OK(t, err)
		must.Equal(t, name, got, want)
	}
	hetero, _, err := atomsOf("HETATM100000" + atom[11:])
	must.OK(t, err)
	if len(hetero) != 1 || hetero[0].Residue != "ALA" || !hetero[0].Hetero {
		t.Error(hetero)
	}
}

// TestChainsOfTwoLetters tests two-letter chain names next to four-letter residue names.
func TestChainsOfTwoLetters(t *testing.T) {
	for _, tt := range []struct {
		columns []string // columns 18 to 22 of each residue
		want    string
	}{
		{[]string{"GLYAA", "HEMAA", "GLYBA", "GLY A"}, "AA AA BA A"},
		{[]string{"GLYA ", "GLYB "}, "A B"},
		{[]string{"GLY A", "TIP3A", "HISHA", "POPCA", "HIS A"}, "A A A A A"},
		{[]string{"TIP4A", "SPCEA", "CMETA", "LYSHA"}, "A A A A"},
		{[]string{" DAAA", "  CBA", "LYSHA", "HOHHA"}, "AA BA HA HA"},
	} {
		var text strings.Builder
		for k, columns := range tt.columns {
			fmt.Fprintf(&text, "ATOM  %5d  CA  %s%4d    %8.3f   0.000   0.000\n", k, columns, k+1, 5*float64(k))
		}
		all, _, err := atomsOf(text.String())
		must.OK(t, err)
		var chains []string
		for _, a := range all {
			chains = append(chains, a.Chain)
		}
		must.Equal(t, text.String(), strings.Join(chains, " "), tt.want)
	}
}

func TestModelsOfPDB(t *testing.T) {
	atom, other := strings.Split(pdbFile, "\n")[2]+"\n", strings.Split(pdbFile, "\n")[4]+"\n"
	for text, want := range map[string]int{
		atom + "END\n" + atom + "END\n" + atom:                             3,
		"MODEL 1\n" + atom + "MODEL 2\n" + atom:                            2,
		"MODEL 1\n" + atom + "ENDMDL\nEND\nMODEL 2\n" + other + "ENDMDL\n": 2,
		atom + "TER\nEND\n":                                                1,
		atom + "ENDED\n" + other:                                           1,
	} {
		if _, models, err := atomsOf(text); models != want || err != nil {
			t.Errorf("%d models, %v, want %d in\n%s", models, err, want, text)
		}
	}
	_, err := Read(strings.NewReader(atom + "TER\nEND\n" + other))
	if want := "has atoms after END in line 3 that are not another model of the previous ones: remove that line if they belong together; otherwise put each structure in a separate file"; err == nil || err.Error() != want {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(pdbFile)
	f.Add(cifFile)
	f.Add(strings.Replace(cifFile, "ATOM N N", "ATOM 'N N", 1))
	f.Add("loop_ _atom_site.x\n_.Cartn_x _.Cartn_x 0 0 0") // columns of another table, twice
	f.Add("_entity.id 1 _entity.type polymer " + cifFile)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Read(strings.NewReader(text))
		if err == nil && m.Atoms > 0 && m.Models == 0 {
			t.Errorf("%d atoms without a model", m.Atoms)
		}
		if m.Summary() == "" {
			t.Error("no summary")
		}
	})
}
