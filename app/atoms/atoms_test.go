package atoms

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

func TestRead(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []Atom
	}{
		"PDB": {pdbFile, []Atom{
			{Name: "N", Residue: "ALA", Chain: "A", Number: 1, Place: [3]float64{11.104, 6.134, -6.504}, Occupancy: 1, B: 20.5, Element: "N"},
			{Name: "CA", Alternate: "A", Residue: "ALA", Chain: "A", Number: -2, Insertion: "A", Place: [3]float64{11.639, 6.071, -5.147}, Occupancy: 0.6, B: 12, Element: "C"},
			{Name: "HG11", Residue: "VAL", Chain: "B", Number: 10, Place: [3]float64{1, 2, 3}, Occupancy: 1, Element: "H"},
			{Name: "CA", Residue: "CA", Chain: "B", Number: 201, Place: [3]float64{1, 2, 3}, Occupancy: 1, B: 30, Element: "CA", Hetero: true},
		}},
		"mmCIF": {cifFile, []Atom{
			{Name: "N", Residue: "ALA", Chain: "X", Number: 5, Place: [3]float64{11.104, 6.134, -6.504}, Occupancy: 1, B: 20.5, Element: "N"},
			{Name: "C1'", Alternate: "B", Residue: "LIG", Chain: "Y", Number: 201, Insertion: "C", Place: [3]float64{1, 2, 3}, Occupancy: 0.5, B: 9, Element: "C", Hetero: true},
		}},
	} {
		for _, text := range []string{tt.text, strings.ReplaceAll(tt.text, "\n", "\r\n")} {
			var got []Atom
			models, err := Read(strings.NewReader(text), func(a *Atom) { got = append(got, *a) })
			if err != nil || models != 2 {
				t.Errorf("%s: %d models, %v", name, models, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
}

func TestMistakesNameTheLine(t *testing.T) {
	good := strings.Split(pdbFile, "\n")[2]
	for text, want := range map[string]string{
		"\n" + good[:50]: "breaks off in line 2: an atom of a PDB file has coordinates in columns 31 to 54",
		strings.Replace(good, " 6.134", "*.****", 1):      `has no coordinate in columns 39 to 46 of line 1, but "  *.****"`,
		strings.Replace(good, "6.134", "  NaN", 1):        `has no coordinate in columns 39 to 46 of line 1, but "     NaN"`,
		strings.Replace(good, "A   1 ", "A   x ", 1):      `has no residue number in columns 23 to 26 of line 1, but "   x"`,
		strings.Replace(cifFile, " 3 0.5", "", 1):         "has 14 values in line 21, where the table of atoms has 16 columns",
		strings.Replace(cifFile, "11.104", "?", 1):        `has no coordinate Cartn_x in line 20, but "?"`,
		strings.Replace(cifFile, "A X 1 5", "A X . .", 1): `has no residue number in line 20, but ""`,
	} {
		_, err := Read(strings.NewReader(text), func(*Atom) {})
		if err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(pdbFile)
	f.Add(cifFile)
	f.Add(strings.Replace(cifFile, "ATOM N N", "ATOM 'N N", 1))
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		if models, err := Read(strings.NewReader(text), func(*Atom) { n++ }); err == nil && n > 0 && models == 0 {
			t.Errorf("%d atoms of no model", n)
		}
	})
}
