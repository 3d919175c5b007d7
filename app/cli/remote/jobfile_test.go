package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestFormatsOfJobFilesSayTheSame(t *testing.T) {
	want := `{"jobName":"a","type":"vina","settings":{"box":"1,2,3","exhaustiveness":8,"seed":12345678901234567890},"files":{"ligands":{"Paths":["a.sdf","b.sdf"],"List":true},"receptor":{"Paths":["r.pdb"],"List":false}},"after":["prep"],"tags":{"target":"6LU7"}}`
	for name, text := range map[string]string{
		"job.json": `{"jobName":"a","type":"vina","settings":{"box":"1,2,3","exhaustiveness":8,"seed":12345678901234567890},"files":{"receptor":"r.pdb","ligands":["a.sdf","b.sdf"]},"after":["prep"],"tags":{"target":"6LU7"}}`,
		"job.yaml": "jobName: a\ntype: vina\nsettings: {box: '1,2,3', exhaustiveness: 8, seed: 12345678901234567890}\nfiles: {receptor: r.pdb, ligands: [a.sdf, b.sdf]}\nafter: [prep]\ntags: {target: 6LU7}\n",
		"stdin":    "\n {\"jobName\":\"a\",\"type\":\"vina\",\"settings\":{\"box\":\"1,2,3\",\"exhaustiveness\":8,\"seed\":12345678901234567890},\"files\":{\"receptor\":\"r.pdb\",\"ligands\":[\"a.sdf\",\"b.sdf\"]},\"after\":[\"prep\"],\"tags\":{\"target\":\"6LU7\"}}",
	} {
		j, err := readJobFile(name, strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, _ := json.Marshal(j); string(got) != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	toml := "jobName = \"a\"\ntype = \"vina\"\n[settings]\nexhaustiveness = 8\npH = 7.0\n[files]\nreceptor = \"r.pdb\"\n"
	j, err := readJobFile("job.toml", strings.NewReader(toml))
	if err != nil || j.Settings["exhaustiveness"] != json.Number("8") || j.Files["receptor"].List || j.Files["receptor"].Paths[0] != "r.pdb" {
		t.Errorf("TOML: %+v, %v", j, err)
	}
}

func TestMistakesInJobFilesNameTheMember(t *testing.T) {
	for text, want := range map[string]string{
		`{"seting":{}}`:                     `did you mean "settings"?`,
		`{"steps":1}`:                       `unknown member "steps"; put settings of the algorithm into settings`,
		`{"files":{"a":1}}`:                 "use a path or a list of paths",
		`{"type":"a"} {}`:                   "unexpected text after the object",
		`{"type":`:                          "EOF",
		`{"settings":[1]}`:                  "settings",
		"type = ":                           "toml",
		strings.Repeat(" ", 64<<20) + "x=1": "64 MiB",
	} {
		_, err := readJobFile("job", strings.NewReader(text))
		must.Fail(t, fmt.Sprintf("%.40q", text), err, want)
	}
}

func TestValuesAreJSONWhereTheyReadAsSuch(t *testing.T) {
	for text, want := range map[string]any{
		"n=8": json.Number("8"), "n=1e3": json.Number("1e3"), "n=true": true, "n=null": nil, `n="8"`: "8", "n=8 A": "8 A", "n=": "", "n=a=b": "a=b", "n=C1=CC=CC=C1": "C1=CC=CC=C1", "n=[oops": "[oops", "n=@f": "text of f",
	} {
		var j jobFile
		err := j.Set(text, func(path string) ([]byte, error) { return []byte("text of " + path), nil })
		if err != nil || j.Settings["n"] != want {
			t.Errorf("%s: %#v, %v, want %#v", text, j.Settings["n"], err, want)
		}
	}
	var j jobFile
	must.Fail(t, "a file that is not there", j.Set("n=@f", func(string) ([]byte, error) { return nil, errors.New("no such file") }), "the setting n: no such file")
	for _, text := range []string{"n", "=1", ""} {
		if j.Set(text, nil) == nil {
			t.Errorf("%q was accepted as a setting", text)
		}
	}
}

func TestFilesOfOneSettingAreAList(t *testing.T) {
	var j jobFile
	for _, text := range []string{"one=a.pdb", "two=b.sdf", "two=c.sdf", "three[]=d.sdf"} {
		must.OK(t, j.AddFile(text))
	}
	got, _ := json.Marshal(j.Files)
	const want = `{"one":{"Paths":["a.pdb"],"List":false},"three":{"Paths":["d.sdf"],"List":true},"two":{"Paths":["b.sdf","c.sdf"],"List":true}}`
	if string(got) != want {
		t.Errorf("files %s, want %s", got, want)
	}
	for _, text := range []string{"one", "=a", "one="} {
		if j.AddFile(text) == nil {
			t.Errorf("%q was accepted as a file", text)
		}
	}
	if j.Tag("nocolon") == nil || j.Tag(":v") == nil || j.Tag("k:") == nil || j.Tag("k:v:w") != nil || j.Tags["k"] != "v:w" {
		t.Errorf("tags %v", j.Tags)
	}
}
