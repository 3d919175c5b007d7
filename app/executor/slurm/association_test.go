package slurm

import "testing"

func TestAssociationHasTheLowestLimit(t *testing.T) {
	for text, want := range map[string]association{
		"":                               {User: "molrun"},
		"||33\nann||2\n":                 {User: "molrun"},
		"||\nmolrun||\n":                 {User: "molrun", Exists: true},
		"|20|5\nmolrun||33\nann||2\n":    {User: "molrun", Exists: true, MaxSubmit: 20},
		"|20|\nmolrun||10\n":             {User: "molrun", Exists: true, MaxSubmit: 10},
		"||\nmolrun|7|10\nnonsense\n|||": {User: "molrun", Exists: true, MaxSubmit: 7},
	} {
		if got := (association{User: "molrun"}).parseAssociation(text); got != want {
			t.Errorf("%q is read as %+v, want %+v", text, got, want)
		}
	}
}
