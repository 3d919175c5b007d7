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
		u.looksAt(a.Type, map[string][]string{"cg-idp": {"results"}}[a.Type]...) // results is of several sequences
		for name, within := range a.Example.Metrics {
			if got, ok := j.Metrics.Results[name].(float64); !ok || got < within[0] || got > within[1] {
				t.Errorf("%s of %s is %v, want %v", name, a.Type, j.Metrics.Results[name], within)
			}
		}
	}
}

// looksAt checks that a job has files of each view but those that are left out.
func (u user) looksAt(job string, without ...string) {
	u.t.Helper()
	var all struct {
		Views []struct {
			Name, Kind string
			Files      []struct{ Path, Topology string }
		}
	}
	must(u.t, json.Unmarshal(u.do("GET", "/jobs/"+job+"/views", nil).want(200).body, &all))
	for _, v := range all.Views {
		if empty := len(v.Files) == 0; empty != slices.Contains(without, v.Name) {
			u.t.Errorf("the view %s of %s has %d files", v.Name, job, len(v.Files))
		}
		for _, f := range v.Files {
			if v.Kind == "trajectory" && f.Topology == "" {
				u.t.Errorf("%s of %s has no topology", f.Path, job)
			}
			u.do("GET", "/jobs/"+job+"/files/"+f.Path, nil).want(200)
			if v.Kind == "series" {
				u.do("GET", "/jobs/"+job+"/series/"+v.Name+"?file="+f.Path, nil).want(200)
				u.do("GET", "/jobs/"+job+"/tables/"+v.Name+"?file="+f.Path, nil).want(200)
			}
		}
	}
}
