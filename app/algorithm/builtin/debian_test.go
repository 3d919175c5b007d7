package builtin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
	"molrun/app/test/must"
)

// TestGROMACSHasTheCutOffsOfItsForceField: parameters are fitted together with them.
func TestGROMACSHasTheCutOffsOfItsForceField(t *testing.T) {
	a := catalogueType("gromacs", "")
	for forcefield, want := range map[string]string{
		"amber99sb-ildn": "rcoulomb = 1.0\nrvdw = 1.0\nDispCorr = EnerPres\n",
		"charmm27":       "rcoulomb = 1.2\nrvdw = 1.2\nvdwtype = cutoff\nvdw-modifier = force-switch\nrvdw-switch = 1.0\nDispCorr = no\n",
	} {
		normalized, faults := check(t, a, `{"structure":"x","forcefield":"`+forcefield+`"}`)
		if faults != nil {
			t.Fatal(faults)
		}
		run, err := a.Expand([]byte(normalized), placement.Resources{CPUs: 1}, algorithm.Paths{Work: "/w", Out: "/w/out", Program: "/molrun", Files: map[string][]string{"structure": {"/w/x.pdb"}}})
		must.OK(t, err)
		for _, name := range []string{"minimize", "nvt", "npt", "run"} {
			if text := run.Texts["/w/"+name+".mdp"]; !strings.Contains(text, want) || strings.Count(text, "rvdw =") != 1 {
				t.Errorf("%s with %s: %s", name, forcefield, text)
			}
		}
	}
}

// runAwk lets a script of the catalogue read a text, and returns what it said and its metrics.
func runAwk(t *testing.T, script, text string) (said, metrics string) {
	t.Helper()
	dir := t.TempDir()
	given, target := filepath.Join(dir, "given"), filepath.Join(dir, "metrics.json")
	must.OK(t, os.WriteFile(given, []byte(text), 0o600))
	out, err := exec.CommandContext(t.Context(), "awk", "-v", "columns="+os.DevNull, "-v", "metrics="+target, "-f", "catalogue/"+script, given).CombinedOutput() //nolint:gosec // a script of the catalogue
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return string(out), must.Read(t, target)
}

func TestSummaryOfAlignmentsDoubtsWhatMeansNothing(t *testing.T) {
	const strand, other = "ACGTTGCAGGCATTAGCCATGCAAGTACGT", "ACGTACTTGCATGGCTAATGCCTGCAACGT"
	for name, tt := range map[string]struct{ fasta, metrics, warning string }{
		"alike":            {">a\nMKVLAAGH\n>b\nMKVLAAGW\n", `"identity": 87.5`, ""},
		"a piece of it":    {">a\nMKVLAAGH\n>b\n--VL----\n", `"identity": 100.0`, ""},
		"fragments apart":  {">a\nMKVL----\n>b\n----AAGH\n", `"gaps": 50.0000}`, "have 0 % of the columns in common"},
		"some of them":     {">a\nMKVLAA------\n>b\n-KVLAA------\n>c\n------GHWYCC\n", `"gaps": 52.7778}`, "have 31 % of the columns in common"},
		"unknown residues": {">a\nXXXXAAGH\n>b\nMKVLAAGH\n", `"identity": 100.0`, ""},
		"one strand":       {">a\n" + strand + "\n>b\n" + strand + "\n", `"identity": 100.0`, ""},
		"two strands":      {">a\n" + strand + "\n>b\n" + other + "\n>c\n" + strings.ReplaceAll(other, "T", "U") + "\n", `"identity"`, "the other strand of a: b, c."},
	} {
		t.Run(name, func(t *testing.T) {
			said, got := runAwk(t, "lib/summary.awk", tt.fasta)
			if !strings.Contains(said, tt.warning) || (tt.warning == "") != (said == "") {
				t.Errorf("said %q, want %q", said, tt.warning)
			}
			if !strings.Contains(got, tt.metrics) || strings.Contains(tt.warning, "columns") && strings.Contains(got, "identity") {
				t.Errorf("metrics %s, want %s", got, tt.metrics)
			}
		})
	}
}

// TestXTBDoubts has the words of xtb 6.5 for planar ammonia, for O2 as a singlet, and for minima.
func TestXTBDoubts(t *testing.T) {
	report := func(imaginary int, lowest, gap string) string {
		twice := strings.Repeat(` projected vibrational frequencies (cm⁻¹)
eigval :       -0.00    -0.00     0.00     0.00     0.00     0.00
eigval :     `+lowest+`  1461.15  1461.40  3621.21  3732.26  3732.38
`, 2)
		return fmt.Sprintf(twice+`          :  # imaginary freq.                       %d      :
          | TOTAL ENERGY               -4.424000000000 Eh   |
          | TOTAL FREE ENERGY          -4.401883036198 Eh   |
          | HOMO-LUMO GAP              %s eV   |
`, imaginary, gap)
	}
	for name, tt := range map[string]struct{ report, metrics, warning string }{
		"minimum":      {report(0, "974.80", "10.450202958860"), `{"free_energy_Eh": -4.401883036198}`, ""},
		"soft":         {report(0, "-12.30", "10.450202958860"), `{"free_energy_Eh": -4.401883036198}`, ""},
		"saddle point": {report(1, "-974.80", "10.450202958860"), `{}`, "imaginary frequencies of -974.80 cm⁻¹"},
		"no gap":       {"          | HOMO-LUMO GAP               0.000000000000 eV   |\n", `{}`, "gap of the orbitals is 0"},
		"energy alone": {"          | HOMO-LUMO GAP              15.417625697982 eV   |\n", `{}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			said, metrics := runAwk(t, "xtb/doubts.awk", tt.report)
			if !strings.Contains(said, tt.warning) || (tt.warning == "") != (said == "") {
				t.Errorf("said %q, want %q", said, tt.warning)
			}
			must.Equal(t, "metrics", strings.TrimSpace(metrics), tt.metrics)
		})
	}
}
