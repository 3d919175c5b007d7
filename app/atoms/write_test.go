package atoms

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
HETATM    4 CA    CA B 201       1.000   2.000   3.000  1.00 30.00          CA
TER
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
TER
END
`, map[string]string{"XY": "A"}},
	} {
		var out bytes.Buffer
		w, err := WritePDB(strings.NewReader(tt.source), &out, tt.leave)
		if err != nil {
			t.Fatal(name, err)
		}
		if diff := cmp.Diff(tt.want, out.String()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(tt.chains, w.Chains); diff != "" || w.Models != 2 {
			t.Errorf("%s: %d models, %s", name, w.Models, diff)
		}
	}
}

// TestWrittenFileIsTheSame reads back what was written of a structure.
func TestWrittenFileIsTheSame(t *testing.T) {
	text, err := os.ReadFile("../algorithms/examples/lysozyme.pdb")
	if err != nil {
		t.Fatal(err)
	}
	read := func(text []byte) (all []Atom) {
		if _, err := Read(bytes.NewReader(text), func(a *Atom) { all = append(all, *a) }); err != nil {
			t.Fatal(err)
		}
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

func TestWhatAPDBFileCannotHold(t *testing.T) {
	for source, want := range map[string]string{
		"": "has no atoms of that kind",
		strings.Replace(cifFile, "ALA A X 1 5", "ALA A X 1 10000", 1): "has the residue ALA 10000 with the atom N, which a PDB file can't hold",
		strings.Replace(cifFile, "B LIG B Y", "B LIG12 B Y", 1):       "has the residue LIG12 201 with the atom C1', which a PDB file can't hold",
	} {
		if _, err := WritePDB(strings.NewReader(source), &bytes.Buffer{}, Selection{}); err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
