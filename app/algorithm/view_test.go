package algorithm

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"molrun/app/algorithm/placement"
	"molrun/app/base/strictjson"
	"molrun/app/test/must"
)

var updateGolden = flag.Bool("update", false, "rewrite golden files")

func TestViewsOfAnAlgorithm(t *testing.T) {
	text, err := os.ReadFile("testdata/algorithms/fold-compare.toml")
	must.OK(t, err)
	a := parseOK(t, string(text))
	m := placement.Machine{CPUs: 4, MemoryBytes: 1 << 30}
	for file, view := range map[string]View{
		"testdata/algorithms/view.json":    a.View(a.Missing(m), []string{"2023.1", "2024.1"}),
		"testdata/algorithms/summary.json": a.Summary(a.Missing(m), []string{"2023.1", "2024.1"}),
	} {
		got, err := json.MarshalIndent(view, "", "  ")
		must.OK(t, err)
		if got = append(got, '\n'); *updateGolden {
			must.OK(t, os.WriteFile(file, got, 0o644))
		}
		want := must.Read(t, file)
		must.Equal(t, file, string(got), want)
	}
}

// Lists must not be null, because clients iterate over them.
func TestViewOfTheSmallestFile(t *testing.T) {
	text, err := json.Marshal(parseOK(t, head).View([]string{}, []string{"1"}))
	must.OK(t, err)
	v := parseJSON(t, string(text))
	for _, list := range []string{"versions", "categories", "functions", "takes", "missing", "cite", "parameters", "metrics"} {
		if m := v.Member(list); m == nil || m.Kind != strictjson.Array {
			t.Errorf("%s is no list in %s", list, text)
		}
	}
}
