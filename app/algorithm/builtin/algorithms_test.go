package builtin

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/app/test/must"
)

func builtIn(t *testing.T, typ string) *algorithm.File {
	t.Helper()
	all, err := BuiltIn()
	must.OK(t, err)
	i := slices.IndexFunc(all, func(a *algorithm.File) bool { return a.Type == typ })
	if i < 0 {
		t.Fatalf("no %s among %d algorithms", typ, len(all))
	}
	return all[i]
}

func parsed(t *testing.T, settings string) *strictjson.Value {
	t.Helper()
	v, err := strictjson.Parse([]byte(settings))
	must.OK(t, err)
	return v
}

func check(t *testing.T, a *algorithm.File, settings string) (string, []fault.Field) {
	t.Helper()
	checked, faults := a.CheckSettings(parsed(t, settings))
	if checked == nil {
		return "", faults
	}
	return string(algorithm.Normalize(checked)), faults
}

func TestBuiltInAlgorithmsMakeACatalogue(t *testing.T) {
	all, err := BuiltIn()
	must.OK(t, err)
	if _, err := algorithm.NewCatalogue(all); err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if a.Example == nil || a.Title == a.Type || a.Description == "" || len(a.Cite) == 0 {
			t.Errorf("%s: a built-in algorithm needs a title, a description, a source and an example", a.Path)
		}
		if missing := a.Missing(placement.Machine{CPUs: 1, MemoryBytes: 1 << 30, Local: true}); len(missing) > 0 {
			t.Errorf("%s is not ready on a small machine: %q", a.Path, missing)
		}
		for _, p := range a.Parameters {
			if p.Title == "" || p.Help == "" && p.Name != "pH" {
				t.Errorf("%s: the parameter %s needs a title and help", a.Path, p.Name)
			}
		}
	}
}

func TestDefaultsOfCGIDP(t *testing.T) {
	a := builtIn(t, "cg-idp")
	got, faults := check(t, a, `{"sequences":["DSHAKRHHGYKRKFHEKHHSHRGY"]}`)
	want := `{"charged_termini":true,"cores":1,"equilibration":0.1,"friction_per_ps":0.01,"ionic_strength_M":0.15,` +
		`"pH":7,"replicas":1,"sample_every":200,"seed":1,"sequences":["DSHAKRHHGYKRKFHEKHHSHRGY"],"temperature_K":298}`
	if got != want || faults != nil {
		t.Errorf("normalized %s, %v; want %s", got, faults, want)
	}
	needs, faults := a.Needs(parsed(t, `{"cores":8}`), nil)
	if want := (placement.Resources{CPUs: 8, MemoryBytes: 512 << 20}); needs != want || faults != nil {
		t.Errorf("needs %+v, %v; want %+v", needs, faults, want)
	}
}

func TestCommandOfCGIDP(t *testing.T) {
	a := builtIn(t, "cg-idp")
	paths := algorithm.Paths{Work: "/w", Out: "/w/out", SettingsFile: "/w/s.json", Program: "/molrun", Files: map[string][]string{"fasta": {"/w/in/fasta.fasta"}}}
	for settings, want := range map[string]string{
		`{"sequences":["ACDEF"]}`:       "/molrun engine cg-idp --settings /w/s.json --out /w/out",
		`{"fasta":"inputs/hst5.fasta"}`: "/molrun engine cg-idp --settings /w/s.json --out /w/out --fasta /w/in/fasta.fasta",
	} {
		normalized, _ := check(t, a, settings)
		run, err := a.Expand([]byte(normalized), placement.Resources{CPUs: 1}, paths)
		if err != nil || len(run.Steps) != 1 || strings.Join(run.Steps[0].Argv, " ") != want {
			t.Errorf("%s: %+v, %v; want %s", settings, run, err, want)
		}
	}
	log := "x\nError: sequence a, replica 1: the chain broke at step 512, between residues 3 and 4: this should not happen\n"
	message, _ := a.Failures.Explain([]byte(log))
	must.Contain(t, "explained", message, "at step 512, between residues 3 and 4")
}

func TestExampleFiles(t *testing.T) {
	if got := strings.Join(Examples(), " "); got != "actr.fasta asyn.fasta hst5.fasta lc-278.json lc-293.json lc-308.json lc-323.json lysozyme.pdb" {
		t.Errorf("examples %s", got)
	}
	for _, name := range Examples() {
		text, err := Example(name)
		if err != nil || strings.HasSuffix(name, ".fasta") != strings.HasPrefix(string(text), ">") {
			t.Errorf("%s: %.20q, %v", name, text, err)
		}
	}
	for _, name := range []string{"", "..", "../cg-idp.toml", "nosuch.fasta", "x/hst5.fasta"} {
		if _, err := Example(name); err == nil {
			t.Errorf("example %q is there", name)
		}
	}
}

func TestLoadSiteFolder(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.toml":       "format = 1\ntype = \"b\"\nversion = \"1\"\ncommand = [\"true\"]\n",
		"a.toml":       "format = 1\ntype = \"a\"\nversion = \"1\"\n",
		"c.toml":       "format = 1\ntype = \"cg-idp\"\nversion = \"2\"\ncommand = [\"true\"]\n",
		".hidden.toml": "x",
		"notes.txt":    "x",
	} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	must.OK(t, os.Mkdir(filepath.Join(dir, "d.toml"), 0o700))
	site, mistakes, err := LoadFolder(dir)
	must.OK(t, err)
	want := []algorithm.Mistake{{File: filepath.Join(dir, "a.toml"), Line: 1, Msg: "nothing to run: write a command or [[steps]]", Type: "a"}}
	must.Equal(t, "mistakes", mistakes, want)
	all, err := BuiltIn()
	must.OK(t, err)
	c, err := algorithm.NewCatalogue(append(all, site...))
	must.OK(t, err)
	must.Equal(t, "types", strings.Join(c.Types(), " "), "b cg-binodal cg-condensate cg-idp sequence-properties structure-summary")
	if a, _ := c.Find("cg-idp", ""); a.Version != "1" {
		t.Errorf("a site's version %s took over from the default", a.Version)
	}
}

func TestLoadReportsUnreadableFiles(t *testing.T) {
	if _, _, err := LoadFolder(filepath.Join(t.TempDir(), "nosuch")); !os.IsNotExist(err) {
		t.Errorf("error %v", err)
	}
	dir := t.TempDir()
	must.OK(t, os.Symlink("/dev/zero", filepath.Join(dir, "x.toml")))
	must.Fail(t, "the error", must.Error3(LoadFolder(dir)), "x.toml is not a regular file")
	dir = t.TempDir()
	must.OK(t, os.Symlink("nosuch", filepath.Join(dir, "x.toml")))
	if _, _, err := LoadFolder(dir); !os.IsNotExist(err) || !strings.Contains(err.Error(), "x.toml") {
		t.Errorf("error %v", err)
	}
}
