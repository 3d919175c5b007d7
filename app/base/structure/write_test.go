package structure

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"molrun/app/test/must"
)

func TestWritePDB(t *testing.T) {
	long := strings.Replace(cifFile, "ALA A X 1 5", "ALA A XY 1 5", 1)
	for name, tt := range map[string]struct {
		source string
		leave  Selection
		want   string
		chains map[string]string
	}{
		"PDB": {pdbFile, Selection{}, `HEADER    MOLECULE
ATOM      1  N   ALA A   1      11.104   6.134  -6.504  1.00 20.50           N
ATOM      2  CA  ALA A  -2A     11.639   6.071  -5.147  0.60 12.00           C
TER
ATOM      3 HG11 VAL B  10       1.000   2.000   3.000  1.00  0.00           H
TER
HETATM    4 CA    CA B 201       1.000   2.000   3.000  1.00 30.00          CA
END
`, map[string]string{}},
		"without hydrogens and ligands": {pdbFile, Selection{Hydrogens: true, Hetero: true}, `HEADER    MOLECULE
ATOM      1  N   ALA A   1      11.104   6.134  -6.504  1.00 20.50           N
ATOM      2  CA  ALA A  -2A     11.639   6.071  -5.147  0.60 12.00           C
TER
END
`, map[string]string{}},
		"mmCIF with a long name of a chain": {long, Selection{}, `HEADER    MOLECULE
ATOM      1  N   ALA A   5      11.104   6.134  -6.504  1.00 20.50           N
TER
HETATM    2  C1' LIG Y 201C      1.000   2.000   3.000  0.50  9.00           C
END
`, map[string]string{"XY": "A"}},
	} {
		var out bytes.Buffer
		w, err := WritePDB(strings.NewReader(tt.source), &out, tt.leave)
		if err != nil {
			t.Fatal(name, err)
		}
		must.Equal(t, name, out.String(), tt.want)
		if diff := cmp.Diff(tt.chains, w.Chains); diff != "" || !strings.Contains(w.Source, "the first of several models") {
			t.Errorf("%s: %s, %s", name, w.Source, diff)
		}
	}
}

// TestWrittenFileIsTheSame reads a written structure back.
func TestWrittenFileIsTheSame(t *testing.T) {
	text, err := os.ReadFile("../../algorithm/builtin/examples/lysozyme.pdb")
	must.OK(t, err)
	read := func(text []byte) []line {
		all, _, err := atomsOf(string(text))
		must.OK(t, err)
		return all
	}
	var out bytes.Buffer
	if _, err := WritePDB(bytes.NewReader(text), &out, Selection{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(read(text), read(out.Bytes())); diff != "" {
		t.Error(diff)
	}
}

func TestOnePlaceOfEachAtom(t *testing.T) {
	text := `ATOM      1  CA ASER A   1       1.000   0.000   0.000  0.40  0.00           C
ATOM      2  CA BSER A   1       2.000   0.000   0.000  0.60  0.00           C
ATOM      3  CB ASER A   1       3.000   0.000   0.000  0.50  0.00           C
ATOM      4  CB BTHR A   1       4.000   0.000   0.000  0.90  0.00           C
`
	var out bytes.Buffer
	w, err := WritePDB(strings.NewReader(text), &out, Selection{})
	if err != nil || w.Atoms != 2 || !strings.Contains(out.String(), "  2.000   0.000") || !strings.Contains(out.String(), "  3.000   0.000") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// peptide writes residues, each bound to the next. A residue is given as record, name,
// and chain with number, such as "ATOM GLY A1", optionally followed by other names for N,
// CA and C.
func peptide(residues ...string) string {
	var text strings.Builder
	for k, residue := range residues {
		words := strings.Fields(residue)
		names := []string{"N", "CA", "C"}
		if len(words) > 3 {
			names = words[3:]
		}
		for i, name := range names {
			name, alternate, _ := strings.Cut(name, "/")
			fmt.Fprintf(&text, "%-6s%5d  %-3s%1s%3s %s%4s    %8.3f%8.3f%8.3f%6.2f%6.2f          %2s\n", words[0], 1, name, alternate, words[1], words[2][:1], words[2][1:],
				3.8*float64(k)+1.25*float64(min(i, 2)), float64(max(0, i-2)), 0.0, map[string]float64{"": 1, "A": 0.4, "B": 0.6}[alternate], 10.0, strings.TrimRight(name, "0123456789A'"))
		}
	}
	return text.String()
}

func TestModifiedResiduesOfChainsBecomeStandardOnes(t *testing.T) {
	text := peptide("HETATM MSE A1 N CA C SE/A SE/B CE", "ATOM GLY A2", "HETATM MSE A3", "HETATM MSE A4", "HETATM SEP A5 N CA C CB OG P O1P HA", "ATOM GLY A6", "ATOM CSO A7 N CA C O CB SG OD", "HETATM SEC A8 N CA C CB SE HA") +
		peptide("HETATM MSE A600", "HETATM HOH A700 O")
	var out bytes.Buffer
	w, err := WritePDB(strings.NewReader(text), &out, Selection{Hetero: true})
	must.OK(t, err)
	must.Equal(t, "modified", w.Modified, []string{"A:MSE1 as MET", "A:MSE3 as MET", "A:MSE4 as MET", "A:SEP5 as SER", "A:CSO7 as CYS", "A:SEC8 as CYS"})
	if strings.Contains(out.String(), "HETATM") || strings.Count(out.String(), " MET A") != 5+3+3 || strings.Count(out.String(), " SER A") != 5 ||
		strings.Count(out.String(), " CYS A") != 6+6 || strings.Count(out.String(), "TER") != 1 {
		t.Error(out.String())
	}
	for _, want := range []string{"  4  SD  MET A   1       2.500   2.000   0.000  0.60 10.00           S\n", " SG  CYS A   8 ", " HA  CYS A   8 "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
	out.Reset()
	if w, err = WritePDB(strings.NewReader(text), &out, Selection{Modified: true}); err != nil || len(w.Modified) != 6 || strings.Count(out.String(), "HETATM") != 3+1 {
		t.Errorf("with ligands: %v, %v\n%s", w, err, out.String())
	}
	out.Reset()
	if w, err = WritePDB(strings.NewReader(text), &out, Selection{}); err != nil || w.Modified != nil || strings.Count(out.String(), "HETATM") != 5+3+3+8+6+3+1 {
		t.Errorf("with HETATM: %v, %v\n%s", w, err, out.String())
	}
}

func TestNoHoleInChainsWithoutHetero(t *testing.T) {
	for text, hole := range map[string]string{
		peptide("ATOM GLY A1", "HETATM XYZ A2", "ATOM GLY A3"):                                                      "A:XYZ2",
		peptide("HETATM PCA A1", "ATOM GLY A2"):                                                                     "A:PCA1",
		peptide("ATOM GLY A1", "HETATM DTR A2", "HETATM DAL A3"):                                                    "A:DTR2, A:DAL3",
		peptide("HETATM GLY A1", "HETATM ALA A2"):                                                                   "",
		peptide("ATOM GLY A1", "HETATM CGU A2 N CA C CB CG CD1 CD2", "ATOM GLY A3"):                                 "A:CGU2",
		peptide("ATOM PHE A64", "HETATM CRO A66 N1 CA1 C3", "ATOM VAL A68"):                                         "A:CRO66",
		peptide("ATOM A A1 P C1' O3'", "HETATM PSU A2 P C1' O3'", "ATOM A A3 P O5' C"):                              "A:PSU2",
		peptide("ATOM GLY A1", "HETATM XYZ A2", "ATOM GLY B3"):                                                      "A:XYZ2",
		peptide("HETATM ACE A1 CH3 O C", "ATOM GLY A2", "HETATM NH2 A3 N"):                                          "",
		peptide("ATOM GLY A1") + strings.ReplaceAll(peptide("HETATM GLU A501"), "   0.000  1.00", "  30.000  1.00"): "",
		peptide("ATOM GLY A1", "HETATM NAG A2 C1 O5 C2", "HETATM NAG A3 C1 O5 C2"):                                  "",
		peptide("HETATM DAL C1", "HETATM MLE C2", "HETATM DVA C3") + peptide("ATOM GLY A1"):                         "C:DAL1, C:DVA3",
		peptide("ATOM GLY A1", "ATOM SER A2 N/B CA/B C/B", "HETATM DTR A2 N/A CA/A C/A", "ATOM GLY A3"):             "",
	} {
		_, err := WritePDB(strings.NewReader(text), &bytes.Buffer{}, Selection{Hetero: true})
		want := "has HETATM residues in its chains, and omitting them would leave gaps: " + hole + "; replace them by standard residues with ATOM records"
		if w, err := WritePDB(strings.NewReader(text), &bytes.Buffer{}, Selection{Modified: true}); err != nil || strings.Join(w.Unusual, ", ") != hole {
			t.Errorf("with ligands: %v, %+v; want %s in\n%s", err, w, hole, text)
		}
		if hole == "" && err != nil || hole != "" && (err == nil || err.Error() != want) {
			t.Errorf("%v; want %s in\n%s", err, hole, text)
		}
	}
}

// TestChainsWithoutNamesGetThem writes chains that are only distinguished by TER records.
func TestChainsWithoutNamesGetThem(t *testing.T) {
	text := strings.ReplaceAll(peptide("ATOM GLY A1", "ATOM GLY A2")+"TER\n"+peptide("ATOM GLY A1", "ATOM GLY A2", "HETATM HOH A3 O"), " A ", "   ")
	var out bytes.Buffer
	w, err := WritePDB(strings.NewReader(text), &out, Selection{})
	must.OK(t, err)
	must.Equal(t, "chains", w.Chains, map[string]string{"": "A", "#2": "B"})
	if strings.Count(out.String(), "TER") != 2 || strings.Count(out.String(), " GLY A ") != 6 || strings.Count(out.String(), " GLY B ") != 6 {
		t.Error(out.String())
	}
}

func TestWatersBeyondTheColumnsAreNumberedAgain(t *testing.T) {
	water := peptide("HETATM HOH A9998 O")
	text := water + strings.Replace(water, "A9998", "AA002", 1)
	var out bytes.Buffer
	w, err := WritePDB(strings.NewReader(text), &out, Selection{})
	must.OK(t, err)
	if !w.Again || !strings.Contains(out.String(), " HOH A9998 ") || !strings.Contains(out.String(), " HOH A   2 ") {
		t.Error(w, out.String())
	}
}

func TestWhatAPDBFileCannotHold(t *testing.T) {
	edited := func(old, text string) string { return strings.Replace(cifFile, old, text, 1) }
	rows := func(n int, row func(k int) string) string {
		head, _, _ := strings.Cut(cifFile, "ATOM N")
		var text strings.Builder
		text.WriteString(head)
		for k := range n {
			text.WriteString(row(k) + "\n")
		}
		return text.String()
	}
	for _, tt := range []struct{ what, source, want string }{
		{"nothing", "", "has no atoms to write"},
		{"number", edited("ALA A X 1 5", "ALA A X 1 10000"), "has the residue X:ALA10000, but residue numbers in a PDB file must be from -999 to 9999: renumber the residues, or upload fewer"},
		{"negative number", edited("ALA A X 1 5", "ALA A X 1 -1000"), "has the residue X:ALA-1000, but residue numbers in a PDB file must be from -999 to 9999: renumber the residues, or upload fewer"},
		{"name of a residue", edited("B LIG B Y", "B LIG12 B Y"), "has the residue Y:LIG12201C, but residue names in a PDB file have at most 3 letters: rename LIG12"},
		{"name of an atom", edited("C1'", "C1'''"), "has the atom C1''' in Y:LIG201C, but atom names in a PDB file have at most 4 letters: rename it"},
		{"insertion code", edited("201 C", "201 CC"), "has the residue Y:LIG201CC, but insertion codes in a PDB file have one letter: renumber the residues"},
		{"coordinate", edited("11.104", "-1000"), "has the coordinate -1000.000 of the atom N in X:ALA5, but coordinates in a PDB file must be from -999.999 to 9999.999: move the structure to the origin"},
		{"chains", rows(63, func(k int) string { return fmt.Sprintf("ATOM C CA . GLY c%d c%d 1 1 ? %d 0 0 1 1 1", k, k, 5*k) }), "has 63 chains, but a PDB file holds at most 62: upload fewer"},
		{"atoms", rows(100_000, func(k int) string {
			return fmt.Sprintf("ATOM C C%d . LIG A A . %d ? %d 0 0 1 1 1", k%100, k/100+1, k%1000)
		}), "has 100000 atoms, but a PDB file holds at most 99999: upload fewer chains"},
	} {
		_, err := WritePDB(strings.NewReader(tt.source), &bytes.Buffer{}, Selection{})
		must.Fail(t, tt.what, err, tt.want)
	}
}
