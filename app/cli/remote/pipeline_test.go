package remote

import (
	"encoding/json"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestPipelinesAreReadInEveryFormat(t *testing.T) {
	want := `{"batchName":"p","jobs":[{"jobName":"a","type":"slab","settings":{"seed":12345678901234567890,"steps":5}},` +
		`{"jobName":"b","type":"slab","settings":{"seed":12345678901234567890,"steps":7}},` +
		`{"type":"sum","settings":{"of":["job:a/@x"]},"after":["b"]}],"note":"n"}`
	for name, text := range map[string]string{
		"p.json": want,
		"p.yaml": `
batchName: p
note: n
jobs:
  - {jobName: a, type: slab, settings: &all {seed: 12345678901234567890, steps: 5}}
  - jobName: b
    type: slab
    settings: {<<: *all, steps: 7}
  - {type: sum, settings: {of: ["job:a/@x"]}, after: [b]}
`,
	} {
		p, err := readPipelineFile(name, strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, _ := json.Marshal(p); string(got) != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	p, err := readPipelineFile("p.toml", strings.NewReader("batchName = \"p\"\n[[jobs]]\ntype = \"a\"\nsettings = { pH = 7.5 }\n[[jobs]]\ntype = \"b\"\n[jobs.files]\nx = \"f.pdb\"\n"))
	if err != nil || len(p.Jobs) != 2 || p.Jobs[0].Settings["pH"] != json.Number("7.5") || p.Jobs[1].Files["x"].Paths[0] != "f.pdb" {
		t.Errorf("TOML: %+v, %v", p, err)
	}
}

func TestMistakesOfPipelinesNameTheJob(t *testing.T) {
	for text, want := range map[string]string{
		`{"batchName":"p"}`:                      "p.json: there are no jobs",
		`{"jobs":[]}`:                            "there are no jobs",
		`{"jobs":{"type":"a"}}`:                  "there are no jobs",
		`{"jobs":[{"type":"a"},5]}`:              "job 2 of jobs is not an object",
		`{"jobs":[{"type":"a"},{"setings":{}}]}`: `job 2 of jobs: unknown member "setings"; did you mean "settings"?`,
		`{"jobs":[{"type":"a"}],"jobName":"x"}`:  `unknown member "jobName"`,
		`{"jobs":[{"type":"a"}],"batchName":5}`:  "batchName",
		`{"jobs":[{"type":"a"}]} {}`:             "unexpected text after the object",
	} {
		must.Fail(t, text, must.Error2(readPipelineFile("p.json", strings.NewReader(text))), want)
	}
}
