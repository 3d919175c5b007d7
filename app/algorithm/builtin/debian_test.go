package builtin

import (
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
			dir := t.TempDir()
			fasta, metrics := filepath.Join(dir, "a.fasta"), filepath.Join(dir, "metrics.json")
			must.OK(t, os.WriteFile(fasta, []byte(tt.fasta), 0o600))
			said, err := exec.CommandContext(t.Context(), "awk", "-v", "columns="+os.DevNull, "-v", "metrics="+metrics, "-f", "catalogue/lib/summary.awk", fasta).CombinedOutput() //nolint:gosec // a script of the catalogue
			if err != nil || !strings.Contains(string(said), tt.warning) || (tt.warning == "") != (len(said) == 0) {
				t.Errorf("said %q, %v; want %q", said, err, tt.warning)
			}
			if got := must.Read(t, metrics); !strings.Contains(got, tt.metrics) || strings.Contains(tt.warning, "columns") && strings.Contains(got, "identity") {
				t.Errorf("metrics %s, want %s", got, tt.metrics)
			}
		})
	}
}
