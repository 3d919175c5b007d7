package structsum

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"molrun/app/base/structure"
	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

const lysozyme = "../../algorithm/builtin/examples/lysozyme.pdb"

// run returns the results folder and the log.
func run(t *testing.T, file string) (dir, text string) {
	t.Helper()
	dir = t.TempDir()
	var log bytes.Buffer
	must.OK(t, Run(t.Context(), strings.NewReader(file), 4.5, dir, &log))
	return dir, log.String()
}

func metrics(t *testing.T, dir string) map[string]float64 {
	t.Helper()
	return enginetest.ReadJSON[map[string]float64](t, dir, "metrics.json")
}

// TestFiguresAgreeWithBiopython compares the metrics with Bio.PDB of Biopython 1.80
// (NeighborSearch) and the radius of gyration with NumPy.
func TestFiguresAgreeWithBiopython(t *testing.T) {
	dir, text := run(t, string(enginetest.Read(t, lysozyme)))
	want := map[string]float64{
		"models": 1, "chains": 1, "residues": 129, "ligands": 0, "waters": 0, "gaps": 0, "missing_residues": 0,
		"contacts": 304, "disulfides": 4, "rg_A": 13.908, "mean_b": 98.24,
	}
	must.Equal(t, "metrics", metrics(t, dir), want)
	if rows := enginetest.ReadCSV(t, dir, "distances.csv"); len(rows) != 130 || rows[0][1] != "A 19" || rows[1][0] != "A 19" || rows[1][1] != "0.00" || rows[3][7] != rows[7][3] {
		t.Error("the map is not that of 129 residues")
	}
	if rows := enginetest.ReadCSV(t, dir, "chains.csv"); rows[1][2] != "129" || rows[1][3] != "19" || !strings.HasPrefix(rows[1][9], "KVFGRCELAAAMKRHGLDNYRGYSLGNWVCAAK") {
		t.Error(rows)
	}
	if rows := enginetest.ReadCSV(t, dir, "residues.csv"); len(rows) != 130 || rows[1][6] != "97.21" {
		t.Error(len(rows), rows[1])
	}
	if !strings.Contains(text, "Disulfide bond: A:CYS24 and A:CYS145.\n") {
		t.Error(text)
	}
}

// file builds a PDB file.
type file struct {
	strings.Builder
	n int
}

// residue adds atoms of a residue, each given as NAME,X. y and z are 0.
func (f *file) residue(record, residue, chain string, number string, atoms ...string) {
	for _, atom := range atoms {
		f.n++
		name, x, _ := strings.Cut(atom, ",")
		name, alternate, _ := strings.Cut(name, "/")
		occupancy := 1.0
		if alternate == "B" {
			occupancy = 0.6
		} else if alternate == "A" {
			occupancy = 0.4
		}
		var place float64
		fmt.Sscan(x, &place)
		fmt.Fprintf(f, "%-6s%5d  %-3s%1s%-3s %1s%5s   %8.3f%8.3f%8.3f%6.2f%6.2f\n", record, f.n, name, alternate, residue, chain, number, place, 0.0, 0.0, occupancy, 10.0)
	}
}

func TestWhatAStructureLacks(t *testing.T) {
	var f file
	f.residue("ATOM", "ALA", "A", "1 ", "N,0", "CA,1.4", "C,2.8")
	f.residue("ATOM", "GLY", "A", "2 ", "N,4.1", "CA,5.5", "C,6.9")
	f.residue("ATOM", "SER", "A", "5 ", "N,12", "CA,13.4", "C,14.8")              // residues 3 and 4 are missing
	f.residue("HETATM", "MSE", "A", "5A", "N,16.1", "CA,17.5", "C,18.9")          // bonded, with an insertion code
	f.residue("ATOM", "LEU", "A", "6 ", "CA,21.2")                                // C and N are missing, and a CA distance of 3.7 Å is no break
	f.residue("ATOM", "VAL", "A", "7 ", "N,40", "CA/A,41.4", "CA/B,90", "C,42.8") // a break despite consecutive numbers
	f.residue("ATOM", "DA", "B", "1 ", "C1',50", "O3',51", "O5',52")
	f.residue("HETATM", "ATP", "A", "300 ", "PG,13", "O1,14")
	f.residue("HETATM", "ZN", "A", "301 ", "ZN,200")
	f.residue("HETATM", "HOH", "A", "401 ", "O,13")
	dir, text := run(t, f.String())
	wantGaps := [][]string{
		{"chain", "before", "after", "missing", "distance_A"},
		{"A", "GLY2", "SER5", "2", "5.10"},
		{"A", "LEU6", "VAL7", "0", "68.80"},
	}
	must.Equal(t, "gaps", enginetest.ReadCSV(t, dir, "gaps.csv"), wantGaps)
	wantChains := [][]string{
		{"chain", "kind", "residues", "first", "last", "gaps", "missing", "not_standard", "incomplete_backbone", "sequence"},
		{"A", "protein", "6", "1", "7", "2", "2", "MSE5A", "LEU6", "AGSXLV"},
		{"B", "nucleic", "1", "1", "1", "0", "0", "", "", "A"},
	}
	must.Equal(t, "chains", enginetest.ReadCSV(t, dir, "chains.csv"), wantChains)
	wantLigands := [][]string{
		{"ligand", "chain", "number", "heavy_atoms", "neighbours", "residues"},
		{"ATP", "A", "300", "2", "2", "A:SER5 A:MSE5A"},
		{"ZN", "A", "301", "1", "0", ""},
	}
	must.Equal(t, "ligands", enginetest.ReadCSV(t, dir, "ligands.csv"), wantLigands)
	must.Equal(t, "warnings", strings.Count(text, "molrun:warning "), 3)
	text = strings.ReplaceAll(text, "molrun:warning ", "")
	m := metrics(t, dir)
	if m["ligands"] != 2 || m["waters"] != 1 || m["residues"] != 6 || m["gaps"] != 2 || m["missing_residues"] != 2 {
		t.Error(m)
	}
	want := `Chain A: protein with 6 residues, 1 to 7.
Chain B: nucleic with 1 residue, 1 to 1.
Ligands and ions: A:ATP300, A:ZN301.
1 water molecule.
`
	if !strings.HasPrefix(text, want) || !strings.Contains(text, "Chain break between A:GLY2 and A:SER5: 2 residues missing.\nChain break between A:LEU6 and A:VAL7: consecutive numbers.\n"+
		"Non-standard residues in chain A: MSE5A.\nIncomplete backbone in chain A: LEU6.\n"+
		"Alternate locations (highest occupancy used): A:VAL7.\n") {
		t.Error(text)
	}
}

// TestInsertionCodesCountInTheChain has five residues with one number, then a gap of two.
func TestInsertionCodesCountInTheChain(t *testing.T) {
	var f file
	for k, number := range []string{"10 ", "10A", "10B", "10C", "10D"} {
		x := 4.1 * float64(k)
		f.residue("ATOM", "ALA", "A", number, fmt.Sprintf("N,%g", x), fmt.Sprintf("CA,%g", x+1.4), fmt.Sprintf("C,%g", x+2.8))
	}
	f.residue("ATOM", "ALA", "A", "13 ", "N,40", "CA,41.4", "C,42.8")
	text := strings.Replace(f.String(), "  16.400", "   1.000", 1) // 10D is in contact with 10, four residues before it
	text = strings.Replace(text, "  40.000", "   6.000", 1)        // 13 is in contact with 10A; counting two missing, they are six apart
	dir, _ := run(t, text)
	var pairs []string
	for _, row := range enginetest.ReadCSV(t, dir, "contacts.csv")[1:] {
		pairs = append(pairs, row[1]+"-"+row[3])
	}
	must.Equal(t, "contacts", pairs, []string{"ALA10-ALA10D", "ALA10-ALA13", "ALA10A-ALA13", "ALA10B-ALA13"})
}

// TestFilesAsPeopleHaveThem reads real-world files; those of the same peptide give the
// same metrics.
func TestFilesAsPeopleHaveThem(t *testing.T) {
	for name, want := range map[string]map[string]float64{
		"dimer-blank.pdb":      {"chains": 2, "residues": 48, "rg_A": 12.722, "gaps": 0},
		"waters-wrap.pdb.gz":   {"chains": 1, "residues": 24, "rg_A": 10.62, "waters": 12_000},
		"waters-hex.pdb":       {"chains": 1, "residues": 24, "rg_A": 10.62, "waters": 30},
		"glu-ligand-mse.pdb":   {"chains": 1, "residues": 24, "rg_A": 10.62, "ligands": 1, "missing_residues": 0},
		"named-pdb-but-gz.pdb": {"chains": 1, "residues": 24, "rg_A": 10.62},
		"model.cif.gz":         {"chains": 1, "residues": 24, "rg_A": 10.62},
		"remark.pdb":           {"chains": 1, "residues": 24, "rg_A": 10.62},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := run(t, string(enginetest.Read(t, "../../test/files/testdata/"+name)))
			got := metrics(t, dir)
			for figure, v := range want {
				if math.Abs(got[figure]-v) > 0.005 {
					t.Errorf("%s is %v, want %v", figure, got[figure], v)
				}
			}
		})
	}
}

func TestNoFigureWithoutAProtein(t *testing.T) {
	var f file
	f.residue("HETATM", "ATP", "A", "300 ", "PG,13", "O1,14")
	dir, _ := run(t, f.String())
	must.Equal(t, "metrics", metrics(t, dir), map[string]float64{"models": 1, "chains": 0, "residues": 0, "ligands": 1, "waters": 0})
}

func TestContactsAreThoseOfAllPairs(t *testing.T) {
	s, err := readStructure(bytes.NewReader(enginetest.Read(t, lysozyme)))
	must.OK(t, err)
	for _, cutoff := range []float64{2, 4.5, 9} {
		var want []contact
		for k, a := range s.residues {
			for _, b := range s.residues[k+1:] {
				least := math.Inf(1)
				for _, x := range a.atoms {
					for _, y := range b.atoms {
						least = min(least, structure.Distance(x, y))
					}
				}
				if least <= cutoff {
					want = append(want, contact{a, b, least})
				}
			}
		}
		got := contacts(s.residues, cutoff)
		if !slices.Equal(got, want) {
			t.Errorf("%v: contacts %v, want %v", cutoff, got, want)
		}
	}
}

func TestMistakesAreSentences(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "the structure has no atoms",
		"ATOM      1  N   ALA A ": "the structure is truncated in line 1: atom records of a PDB file have coordinates in columns 31 to 54",
	} {
		if err := Run(t.Context(), strings.NewReader(text), 4.5, t.TempDir(), io.Discard); err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
