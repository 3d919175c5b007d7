package run

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/engine/md"
	"molrun/app/engine/store"
	"molrun/app/engine/trajectory"
	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

var origin = store.Origin{Molrun: "1.2.3", Engine: "cg-condensate 1, CALVADOS 2, one bead per residue", Conditions: "293 K, pH 7", Digest: bytes.Repeat([]byte{0xab}, 32)}

// structuresOf returns the folder of a replica with the given number of chains that has
// written its first frame.
func structuresOf(t *testing.T, chains int, box md.Vec) (folder string) {
	t.Helper()
	folder = t.TempDir()
	var all []string
	for k := range chains {
		all = append(all, []string{"GSY", "RW"}[k%2])
	}
	x := make([]md.Vec, len(strings.Join(all, "")))
	for i := range x {
		x[i] = md.Vec{X: 0.1 * float64(i), Y: 1, Z: -2}
	}
	b := &Base{Number: 1, Folder: folder, About: About{origin, box}, Trajectory: trajectory.NewDCD(len(x), 1, box)}
	must.OK(t, b.Create("a test"))
	defer b.Trajectory.Close()
	must.OK(t, b.Frame(x, md.Vec{}, all))
	return folder
}

func TestStructuresSayWhatMadeThem(t *testing.T) {
	folder := structuresOf(t, 64, md.Vec{X: 9, Y: 9.5, Z: 70})
	pdb := string(enginetest.Read(t, folder, TopologyFile))
	for _, want := range []string{
		"REMARK   6 molrun 1.2.3 ", "REMARK   6 cg-condensate 1, CALVADOS 2, one bead per residue ", "REMARK   6 293 K, pH 7 ", "REMARK   6 " + origin.Hex(),
		"CRYST1   90.000   95.000  700.000  90.00  90.00  90.00 P 1           1          \n",
		"ATOM      1  CA  GLY A   1       0.000  10.000 -20.000  1.00  0.00      A    C  \n",
		"ATOM    156  CA  GLY A   1     155.000  10.000 -20.000  1.00  0.00      BK   C  \n",
	} {
		must.Contain(t, TopologyFile, pdb, want)
	}
	for line := range strings.Lines(pdb) {
		if len(line) > 81 {
			t.Errorf("a line of %d characters: %s", len(line), line)
		}
	}
	must.Contain(t, "the trajectory", string(enginetest.Read(t, folder, TrajectoryName(1))), origin.Short())
	cif := string(enginetest.Read(t, folder, ChainsFile))
	for _, want := range []string{
		"_software.version '1.2.3'\n", origin.Hex(), "_cell.length_c 700.000\n", "\nA 1\nB 2\n", "\nBK 1\nBL 2\n",
		"\nATOM 156 C CA . GLY BK 1 1 ? 155.000 10.000 -20.000 1.00 0.00 1 GLY BK CA 1\n",
	} {
		must.Contain(t, ChainsFile, cif, want)
	}
	// A single chain needs no name and has no box.
	folder = structuresOf(t, 1, md.Vec{})
	single := string(enginetest.Read(t, folder, TopologyFile))
	if strings.Contains(single, "CRYST1") || !strings.Contains(single, "0.00           C  \n") {
		t.Errorf("%s", single)
	}
	if found, _ := filepath.Glob(filepath.Join(folder, "*.cif")); found != nil {
		t.Error(found)
	}
}

// Gemmi reads every chain.
func TestChainsAreReadByGemmi(t *testing.T) {
	const python = "/usr/bin/python3"
	if exec.CommandContext(t.Context(), python, "-c", "import gemmi").Run() != nil {
		must.Skip(t, "no Python here has gemmi, which would read mmCIF")
	}
	folder := structuresOf(t, 200, md.Vec{X: 9, Y: 9.5, Z: 70})
	const read = `import gemmi, sys
s = gemmi.read_structure(sys.argv[1]); s.setup_entities()
print(len(s), len(s[0]), sum(len(c) for c in s[0]), len(s.entities), s.cell.c, s[0][199].name)`
	out, err := exec.CommandContext(t.Context(), python, "-c", read, filepath.Join(folder, ChainsFile)).CombinedOutput()
	must.OK(t, err)
	must.Equal(t, "models, chains, residues, entities, edge, last chain", strings.TrimSpace(string(out)), fmt.Sprintf("1 200 500 2 700.0 %s", trajectory.ChainName(199)))
}

func TestChainNames(t *testing.T) {
	seen := map[string]bool{}
	for k := range 1000 {
		name := trajectory.ChainName(k)
		if seen[name] || len(name) > 3 {
			t.Errorf("chain %d is called %q", k, name)
		}
		seen[name] = true
	}
	must.Equal(t, "chain 26", trajectory.ChainName(26), "AA")
	must.Equal(t, "chain 701", trajectory.ChainName(701), "ZZ")
	must.Equal(t, "chain 702", trajectory.ChainName(702), "AAA")
}
