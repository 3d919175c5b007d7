package builtin

import (
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
