package cli

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"molrun/app/algorithm"
	"molrun/app/client"
	"molrun/app/job/audit"
	"molrun/app/test/must"
)

// nearFile is an algorithm that runs on any machine, with a description and settings.
const nearFile = `format = 1
type = "near"
version = "%s"
title = "Near"
description = "It does nothing."
command = ["true"]

[[parameters]]
name = "steps"
title = "Steps"
unit = "ps"
type = "integer"
default = 10

[[parameters]]
name = "word"
title = "Word"
type = "string"
required = true
`

// TestCheckFollowsJobsToTheCluster checks an algorithm that needs more GPUs than any
// machine has.
func TestCheckFollowsJobsToTheCluster(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, config := filepath.Join(dir, "wide.toml"), filepath.Join(dir, "config.toml")
	must.Write(t, file, strings.NewReplacer("%s", "1", "near", "wide", "[[parameters]]\nname = \"steps\"", "[resources]\ngpus = 1000\n\n[[parameters]]\nname = \"steps\"").Replace(nearFile))
	const cluster = "[slurm]\nshared_dir = \"/shared\"\n"
	for text, want := range map[string]string{
		"":      "not ready on this machine: it needs at least 1000 GPUs, but there are only 0\n",
		cluster: "not ready on this machine: it needs at least 1000 GPUs, but there are only 0; no rule in [[runner.rules]] routes its jobs to the cluster\n",
		"[runner]\nexecutor = \"slurm\"\n" + cluster:                       " and ready for the cluster, whose nodes were not checked\n",
		"[[runner.rules]]\nexecutor = \"slurm\"\nmin_gpus = 1\n" + cluster: " and ready for the cluster, whose nodes were not checked\n",
	} {
		must.Write(t, config, text)
		if out, errs, code := within(t, "", "algorithms", "check", file, "--config", config); !strings.HasSuffix(out, want) || errs != "" || code != 0 {
			t.Errorf("with %q: exit code %d: %s%swant %s", text, code, out, errs, want)
		}
	}
}

func TestAlgorithmsAreListedShownAndChecked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "algorithms")
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		must.OK(t, os.MkdirAll(folder, 0o700))
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	near := write("near.toml", strings.Replace(nearFile, "%s", "1", 1))
	far := write("far.toml", strings.NewReplacer("%s", "1", "near", "far", "Near", "Far", "description = \"It does nothing.\"\n", "", "[\"true\"]", "[\"no-such-program\"]").Replace(nearFile))
	config := filepath.Join(dir, "config.toml")
	must.OK(t, os.WriteFile(config, []byte("algorithms = \""+folder+"\"\n"), 0o600))
	run := func(args ...string) (out, errs string, code int) {
		t.Helper()
		return within(t, "", append(append([]string{"algorithms"}, args...), "--config", config)...)
	}

	out, errs, code := run("list")
	if code != 0 || errs != "" || !strings.HasPrefix(out, "TYPE ") {
		t.Errorf("list: exit code %d: %s%s", code, out, errs)
	}
	for line := range strings.Lines(out) {
		switch fields := strings.Fields(line); {
		case fields[0] == "near" && strings.Join(fields, " ") != "near 1 yes Near":
			t.Errorf("list says %s", line)
		case fields[0] == "far" && !strings.HasPrefix(strings.Join(fields, " "), "far 1 no: the program no-such-program"):
			t.Errorf("list says %s", line)
		}
	}
	var views []algorithm.View
	out, _, code = run("list", "--json")
	if err := json.Unmarshal([]byte(out), &views); err != nil || code != 0 || len(views) < 3 {
		t.Errorf("list --json: exit code %d, %v: %s", code, err, out)
	}

	out, _, code = run("show", "near")
	wantOutput(t, "show near", out, "near 1: Near\nIt does nothing.\n\nSETTING DEFAULT UNIT TITLE\nsteps 10 ps Steps\nword required Word\n")
	must.Equal(t, "show: exit code", code, 0)
	if out, _, _ := run("show", "far"); !strings.HasPrefix(out, "far 1: Far\nnot ready: the program no-such-program") {
		t.Errorf("show far says %s", out)
	}
	var view algorithm.View
	if out, _, code := run("show", "near", "--version", "1", "--json"); json.Unmarshal([]byte(out), &view) != nil || view.Type != "near" || !view.Ready || code != 0 {
		t.Errorf("show --json: exit code %d: %s", code, out)
	}
	for _, args := range [][]string{{"show", "nowhere"}, {"show", "near", "--version", "2"}} {
		if _, errs, code := run(args...); code != exitMissing || !strings.Contains(errs, "`molrun algorithms list` shows them") {
			t.Errorf("%q: exit code %d: %s", args, code, errs)
		}
	}

	check := func(files ...string) (out, errs string, code int) {
		t.Helper()
		return within(t, "", append([]string{"algorithms", "check"}, files...)...)
	}
	out, errs, code = check(near, far)
	if want := near + ": near 1 is valid and ready on this machine\n" + far + ": far 1 is valid; not ready on this machine: the program no-such-program"; !strings.HasPrefix(out, want) || errs != "" || code != 0 {
		t.Errorf("check: exit code %d: %s%swant %s", code, out, errs, want)
	}
	if out, errs, code := check(folder); !strings.HasPrefix(out, far+": far 1 is valid; not") || !strings.Contains(out, near+": near 1 is valid and ready") || errs != "" || code != 0 {
		t.Errorf("check of a folder: exit code %d: %s%s", code, out, errs)
	}
	one := write("one.toml", strings.Replace(strings.Replace(nearFile, "%s", "1", 1), "title = \"Steps\"", "titel = \"Steps\"", 1))
	two := write("two.toml", strings.Replace(strings.Replace(nearFile, "%s", "1", 1), "tit", "tut", 2))
	if out, errs, code := check(near, one); code != exitInvalid || !strings.HasSuffix(errs, "molrun: 1 error\n") || !strings.Contains(errs, "one.toml:") || !strings.Contains(out, "near 1 is valid and ready") {
		t.Errorf("check of a mistake: exit code %d: %s%s", code, out, errs)
	}
	if _, errs, code := check(one, two); code != exitInvalid || !strings.HasSuffix(errs, " errors\n") || strings.Contains(errs, "molrun: 1 ") {
		t.Errorf("check of mistakes: exit code %d: %s", code, errs)
	}
	if _, errs, code := check(filepath.Join(dir, "nowhere.toml")); code == 0 || !strings.Contains(errs, "no such file") {
		t.Errorf("check of nothing: exit code %d: %s", code, errs)
	}
}

// Assets that jobs can't download while they run are fetched in advance, to the
// configured path.
func TestAssetsAreFetched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := strings.NewReplacer("%s", "1", "[\"true\"]", "[\"true\", \"{site.near}\"]").Replace(nearFile)
	for _, asset := range []string{
		"name = \"web\"\npath = \"{site.near}/a b.bin\"\nsize = 3\nfetch = \"https://example.org/a?b=c\"\n",
		"name = \"one\"\npath = \"{site.near}/one\"\nfrom = \"here\"\nfetch = [\"touch\", \"{site.near}/one\", \"{site.near}/two\"]\n",
		"name = \"two\"\npath = \"{site.near}/two\"\nfrom = \"here\"\nfetch = [\"touch\", \"{site.near}/one\", \"{site.near}/two\"]\n",
		"name = \"licensed\"\npath = \"{site.near}/c.bin\"\nsize = \"1GiB\"\nfrom = \"its authors\"\n",
	} {
		text += "[[assets]]\n" + asset
	}
	must.OK(t, os.WriteFile(filepath.Join(dir, "near.toml"), []byte(text), 0o600))
	config := filepath.Join(dir, "config.toml")
	must.OK(t, os.WriteFile(config, fmt.Appendf(nil, "algorithms = %q\n[site.paths]\nnear = %[1]q\n", dir), 0o600))
	fetch := func(args ...string) (out, errs string, code int) {
		t.Helper()
		return within(t, "", append([]string{"algorithms", "fetch", "near", "--config", config}, args...)...)
	}
	out, errs, code := fetch("--print")
	want := strings.ReplaceAll(`# near: web (3 bytes), from https://example.org/a?b=c
curl -fL --retry 5 --create-dirs -C - -o 'DIR/a b.bin.part' 'https://example.org/a?b=c' && mv 'DIR/a b.bin.part' 'DIR/a b.bin'
# near: one, from here
touch DIR/one DIR/two
# near: two, from here
# near: licensed (1.0 GiB), from its authors
# get it manually, and put it at DIR/c.bin
`, "DIR", dir)
	if out != want || code != 0 {
		t.Errorf("exit code %d: %s%s, want %s", code, out, errs, want)
	}
	must.OK(t, os.WriteFile(filepath.Join(dir, "a b.bin"), []byte("abc"), 0o600))
	if out, errs, code := fetch(); code != exitFailed || !strings.Contains(errs, "molrun: licensed (1.0 GiB) is not at") || strings.Contains(errs, "curl") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	must.OK(t, os.WriteFile(filepath.Join(dir, "c.bin"), nil, 0o600))
	must.OK(t, os.Truncate(filepath.Join(dir, "c.bin"), 1<<30))
	if out, errs, code := fetch("--print"); code != 0 || out != "# near 1: nothing is missing\n" {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if _, errs, code := within(t, "", "algorithms", "fetch", "nowhere", "--config", config); code != exitMissing || !strings.Contains(errs, "no algorithm \"nowhere\"") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// A file written for version 2022 also fits 2022.5.
func TestVersionsOfProgramsAreCompared(t *testing.T) {
	t.Parallel()
	for version, warns := range map[string]bool{"2022.5": false, "2022": false, "2021": true, "202": true, "2022.50": true} {
		file := filepath.Join(t.TempDir(), "tool.toml")
		must.OK(t, os.WriteFile(file, []byte("format = 1\ntype = \"tool\"\nversion = \""+version+"\"\ncommand = [\"true\"]\nversion_command = [\"echo\", \"tool 2022.5\"]\nversion_pattern = 'tool (\\S+)'\n"), 0o600))
		if _, errs, code := within(t, "", "algorithms", "check", file); code != 0 || strings.Contains(errs, "was written for "+version) != warns {
			t.Errorf("%s: exit code %d, %s", version, code, errs)
		}
	}
}

func TestOneProblemIsEnoughToFailACheck(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	uploads, err := filepath.Glob(d.Path("uploads", "??", "*"))
	must.OK(t, err)
	must.OK(t, os.Truncate(uploads[0], 1))
	out, errs, code := d.run("check")
	if code != exitFailed || !strings.Contains(out, ": 1 problems\n") || !strings.Contains(errs, "only a backup can recover lost data") {
		t.Errorf("check: exit code %d: %s%s", code, out, errs)
	}
	if out, _, code := d.run("check", "--json"); code != exitFailed || !strings.Contains(out, `"problemCount": 1`) {
		t.Errorf("check --json: exit code %d: %s", code, out)
	}
	dir := filepath.Join(t.TempDir(), "backups")
	if out, errs, code := d.run("backup", dir); code != exitFailed || !strings.Contains(out, " copied) in ") || !strings.Contains(errs, "has 1 bytes, its record says 6\n") {
		t.Errorf("backup: exit code %d: %s%s", code, out, errs)
	}
	if out, errs, code := d.run("restore", dir, "--data", filepath.Join(t.TempDir(), "new"), "--json"); code != exitFailed ||
		!strings.Contains(out, `"backup": "2`) || !strings.Contains(errs, "restored, with 1 problems; see above") {
		t.Errorf("restore: exit code %d: %s%s", code, out, errs)
	}
}

func TestAddressIsAFlagOfFewCommands(t *testing.T) {
	t.Parallel()
	var with []string
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Flags().Lookup("listen") != nil {
			with = append(with, c.Name())
		}
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(newRoot())
	slices.Sort(with)
	must.Equal(t, "commands with --listen", []string{"doctor", "health", "serve"}, with)
}

// full is a writer that fails with errFull after the first left writes.
type full struct{ left int }

var errFull = errors.New("no space left on device")

func (w *full) Write(text []byte) (int, error) {
	if w.left--; w.left < 0 {
		return 0, errFull
	}
	return len(text), nil
}

func TestOutputThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	for left := range 2 {
		if err := printEntries(&full{left}, false)(audit.Entry{Action: "key.create"}); !errors.Is(err, errFull) {
			t.Errorf("after %d writes: %v", left, err)
		}
	}
	if err := printEntries(&full{}, true)(audit.Entry{}); !errors.Is(err, errFull) {
		t.Errorf("as JSON: %v", err)
	}
	for name, err := range map[string]error{
		"table": printTable(&full{}, []string{"A"}, nil), "JSON": printJSON(&full{}, 1), "report": printReport(&full{}, &client.StorageReport{}),
	} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestProgressOfTheDemonstration(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 31)
	for _, tt := range []struct {
		bar  bool
		job  client.Job
		want string
	}{
		{true, client.Job{Status: "QUEUED"}, "[" + strings.Repeat(".", 30) + "]   0 % QUEUED "},
		{true, client.Job{Status: "RUNNING", Progress: &client.Progress{Fraction: 0.55, Text: "half"}}, "[" + strings.Repeat("#", 16) + strings.Repeat(".", 14) + "]  55 % RUNNING half"},
		{true, client.Job{Status: "RUNNING", Progress: &client.Progress{Text: long}}, "[" + strings.Repeat(".", 30) + "]   0 % RUNNING " + long[:29] + "…"},
		{true, client.Job{Status: "RUNNING", Progress: &client.Progress{Text: long[1:]}}, "[" + strings.Repeat(".", 30) + "]   0 % RUNNING " + long[1:]},
		{false, client.Job{Status: "RUNNING", Progress: &client.Progress{Fraction: 0.59, Text: "half"}}, "[" + strings.Repeat("#", 15) + strings.Repeat(".", 15) + "]  50 % RUNNING "},
		{false, client.Job{Status: "COMPLETED"}, "[" + strings.Repeat("#", 30) + "] 100 % COMPLETED "},
	} {
		var out strings.Builder
		d := demo{out: &out, bar: tt.bar}
		if got := d.progressLine(&tt.job); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
		d.drawLine("line")
		must.Equal(t, "drawn", out.String(), map[bool]string{true: "\r\033[Kline", false: "line\n"}[tt.bar])
	}
	archive := filepath.Join(t.TempDir(), "a.zip")
	f, err := os.Create(archive)
	must.OK(t, err)
	w := zip.NewWriter(f)
	for _, name := range []string{"a/other.json", "a/metrics.json"} {
		part, err := w.Create(name)
		must.OK(t, err)
		_, err = part.Write([]byte(name))
		must.OK(t, err)
	}
	must.OK(t, errors.Join(w.Close(), f.Close()))
	if text, err := readZipped(archive, "metrics.json"); err != nil || string(text) != "a/metrics.json" {
		t.Errorf("got %q, %v", text, err)
	}
	must.Fail(t, "the error", must.Error2(readZipped(archive, "none.json")), "has no none.json")
}

// TestEditorsFindTheSchema writes the schema to the path that a new algorithm refers to.
func TestEditorsFindTheSchema(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	schema, errs, code := within(t, "", "algorithms", "schema")
	if code != 0 || errs != "" || schema != string(algorithm.FormatSchema) {
		t.Errorf("exit code %d: %s%.80s", code, errs, schema)
	}
	if _, errs, code := within(t, "", "algorithms", "new", "true", "--type", "nothing", "--dir", dir); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	text := must.Read(t, filepath.Join(dir, "nothing", "algorithm.toml"))
	if first, _, _ := strings.Cut(text, "\n"); first != "#:schema ../algorithm.schema.json" {
		t.Errorf("a new file begins with %q", first)
	}
	if out, errs, code := within(t, "", "algorithms", "check", filepath.Join(dir, "nothing")); code != 0 {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}
