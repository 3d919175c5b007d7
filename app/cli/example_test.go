package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"molrun/app/algorithms"
)

func TestBuiltInExamplesProduceTheDocumentedResults(t *testing.T) {
	t.Parallel()
	all, err := algorithms.BuiltIn()
	must(t, err)
	u := plain(t).user("lab", "ann@lab.example")
	for _, name := range algorithms.Examples() {
		text, err := algorithms.Example(name)
		must(t, err)
		u.upload(name, string(text))
	}
	for _, a := range all {
		if a.Example == nil {
			t.Errorf("%s has no [example]", a.Path)
			continue
		}
		settings := strings.ReplaceAll(string(a.Example.Settings), `"example:`, `"inputs/`)
		u.submit(a.Type, a.Type, settings)
		j := u.finished(a.Type)
		if j.Status != "COMPLETED" {
			t.Errorf("the example of %s: %+v", a.Type, j.Failure)
			continue
		}
		var listed struct{ Files []struct{ Path string } }
		must(t, json.Unmarshal(u.do("GET", "/jobs/"+a.Type+"/files", nil).want(200).body, &listed))
		for _, file := range a.Example.Files {
			if !slices.ContainsFunc(listed.Files, func(f struct{ Path string }) bool { return f.Path == file }) {
				t.Errorf("the result of %s lacks %s", a.Type, file)
			}
		}
		for name, within := range a.Example.Metrics {
			if got, ok := j.Metrics.Results[name].(float64); !ok || got < within[0] || got > within[1] {
				t.Errorf("%s of %s is %v, want %v", name, a.Type, j.Metrics.Results[name], within)
			}
		}
	}
}
