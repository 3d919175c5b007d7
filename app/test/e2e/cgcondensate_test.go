package e2e

import (
	"fmt"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// smallSlab returns the settings of a slab of many chains, run for a few steps.
func smallSlab(steps int) string {
	return fmt.Sprintf(`{"components":[{"name":"sticky","sequence":"GFYRGSYDGFYRGSYD","copies":20},{"name":"plain","sequence":"GSGSGSGS","copies":5}],
		"box_nm":[9,9,40],"steps":%d,"sample_every":50,"frame_every":100,"cores":2}`, steps)
}

// viewsShown returns the names of a job's views that have files.
func (u user) viewsShown(job string) (names []string) {
	u.t.Helper()
	var all struct {
		Views []struct {
			Name  string
			Files []struct{ Path string }
		}
	}
	u.do("GET", "/jobs/"+job+"/views", nil).want(200).into(&all)
	for _, v := range all.Views {
		if len(v.Files) > 0 {
			names = append(names, v.Name)
		}
	}
	return names
}

func TestCondensateShowsItsResults(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	u.submit("slab", "cg-condensate", smallSlab(3000))
	u.upload("pair.fasta", ">pair\nGFYRGSYDGF\n")
	u.submit("pair", "cg-condensate", `{"fasta":"inputs/pair.fasta","copies":2,"protocol":"dilute","box_nm":[9,9,9],"steps":20000,"sample_every":10}`)
	slab := u.completed("slab").Metrics.Results
	// Twenty chains do not form a slab with a plateau.
	reason, _ := slab["condensed_reason"].(string)
	if condensed, has := slab["condensed"]; !has || condensed != nil || reason == "" || slab["components"].(map[string]any)["plain"] == nil {
		t.Errorf("the figures of a slab: %v", slab)
	}
	want := []string{
		"slab", "ensemble", "profile_plot", "profile", "profile_time", "components", "clusters", "energy",
		"temperature", "contacts",
	}
	must.Equal(t, "views", u.viewsShown("slab"), want)
	pair := u.completed("pair").Metrics.Results
	if _, ok := pair["b22_nm3"].(float64); !ok || pair["condensed"] != nil || pair["rg_nm"].(float64) <= 0 {
		t.Errorf("the figures of a pair: %v", pair)
	}
}

// ofChains returns the body of a condensate submission.
func ofChains(settings string) string {
	return fmt.Sprintf(`{"jobName":"j","type":"cg-condensate","settings":%s}`, settings)
}

// Runtime, resources and warnings about runs too short for a result are known before any
// condensate has run.
func TestCondensateIsEstimatedBeforeAnyHasRun(t *testing.T) {
	t.Parallel()
	u := startServer(t, serverOptions{config: "[runner]\ncpus = 2\n"}).user("lab", "ann@lab.example")
	type estimate struct {
		RunSeconds int64
		RunBasis   string
		Notes      []struct{ Loc []any }
		Slots      []struct{ MemoryBytes int64 }
	}
	estimated := func(settings string) (e estimate) {
		u.do("POST", "/estimate", ofChains(settings)).want(200).into(&e)
		if len(e.Slots) != 1 {
			t.Fatalf("%s: %+v", settings, e)
		}
		return e
	}
	slab := func(sequence string, steps int) string {
		return fmt.Sprintf(`{"components":[{"sequence":%q,"copies":100}],"steps":%d,"cores":1}`, strings.Repeat(sequence, 20), steps)
	}
	plain, short := estimated(slab("GSYQ", 10_000_000)), estimated(slab("GSYQ", 1_000_000))
	if plain.RunBasis != "the algorithm file of cg-condensate 1" || plain.RunSeconds != 8000*10*27/100 || short.RunSeconds*10 != plain.RunSeconds {
		t.Errorf("without a run before, %+v and %+v", plain, short)
	}
	for _, tt := range []struct{ settings, want string }{
		{slab("GSYQ", 10_000_000), "[]"},
		{slab("GSYQ", 1_000_000), "[[body settings steps]]"},
		{`{"components":[{"sequence":"GSYQGSYQ","copies":100}],"steps":1000}`, "[[body settings steps] [body settings components]]"},
		{`{"components":[{"sequence":"GSYQGSYQ","copies":100}],"steps":1000,"protocol":"bulk"}`, "[]"},
		{`{"components":[{"sequence":"GSYQGSYQGSYQ","copies":208}],"box_nm":[9,9,80]}`, "[]"},
		{`{"components":[{"sequence":"GSYQGSYQGSYQ","copies":200}],"box_nm":[9,9,80]}`, "[[body settings components]]"},
	} {
		at := [][]any{}
		for _, n := range estimated(tt.settings).Notes {
			at = append(at, n.Loc)
		}
		if fmt.Sprint(at) != tt.want {
			t.Errorf("%s: notes at %v, want %s", tt.settings, at, tt.want)
		}
	}
	told, _ := u.person().onTerminal("estimate", "cg-condensate", "--example")
	for _, want := range []string{"runs      about 2m", " (the algorithm file of cg-condensate 1)", "\nnote      steps: are too few for concentrations: "} {
		must.Contain(t, "the text", told, want)
	}
	chains := func(copies int) string {
		return fmt.Sprintf(`{"components":[{"sequence":%q,"copies":%d}]}`, strings.Repeat("GSYR", 50), copies)
	}
	if few, many := estimated(chains(10)).Slots[0].MemoryBytes, estimated(chains(400)).Slots[0].MemoryBytes; few >= many || many < 100<<20 {
		t.Errorf("%d bytes of memory for few chains, and %d for many", few, many)
	}
}
