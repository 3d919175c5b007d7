package algorithm

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"molrun/app/algorithm/placement"
	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

const commandFile = `format = 1
type = "demo"
version = "1"

[[steps]]
name = "first"
command = [
  "/bin/prog", "{settings.text}", "{settings.number}", "--flag={settings.flag}", "{settings.list}", "{settings.object}",
  "{files.pdb}", "{settings_file}", "{out}/x", "{work}", "{cpus}", "{gpus}", "{molrun}",
  "{{print ${{1}}}}", "plain text with $(echo) \"quotes\"", "",
  { if = "settings.flag", args = ["on"] },
  { if = "settings.extra", args = ["-e", "{settings.extra}"] },
  { if = "settings.more", args = ["-m", "{files.more}"] },
  { if = "settings.number", args = ["n"] },
]
stdout = "{out}/first.txt"

[[steps]]
command = ["{molrun}", "x"]
stdout = "{work}/a/b.txt"

[[steps]]
command = ["last"]

[env]
THREADS = "{cpus}"
PLAIN = 4
FRACTION = 0.50
YES = true
PLACE = "{work}:{out}"

[[parameters]]
name = "text"
type = "string"
required = true
[[parameters]]
name = "number"
type = "number"
default = 1.5
[[parameters]]
name = "flag"
type = "boolean"
default = false
[[parameters]]
name = "list"
type = "array"
default = ["a b", 1.0, true]
[[parameters]]
name = "object"
type = "object"
default = { b = 1, a = { c = "x" } }
[[parameters]]
name = "extra"
type = ["string", "null"]
[[parameters]]
name = "pdb"
file = [".pdb"]
required = true
[[parameters]]
name = "more"
file = [".pdb"]
`

var commandPaths = Paths{
	Work: "/w", Out: "/w/out", SettingsFile: "/w/settings.json", Program: "/usr/bin/molrun",
	Files: map[string][]string{"pdb": {"/w/in/pdb.pdb"}, "more": {"/w/in/more.pdb"}},
}

func TestEveryPlaceholder(t *testing.T) {
	a := parseOK(t, commandFile)
	normalized := checked(t, a, `{"text":"; rm -rf ~ \" '\n$(x)","pdb":"inputs/a.pdb"}`)
	run, err := a.Expand(normalized, placement.Resources{CPUs: 4, GPUs: 2}, commandPaths)
	must.OK(t, err)
	want := []protocol.Step{
		{Name: "first", Stdout: "/w/out/first.txt", Argv: []string{
			"/bin/prog", "; rm -rf ~ \" '\n$(x)", "1.5", "--flag=false", `["a b",1,true]`, `{"a":{"c":"x"},"b":1}`,
			"/w/in/pdb.pdb", "/w/settings.json", "/w/out/x", "/w", "4", "2", "/usr/bin/molrun",
			"{print ${1}}", `plain text with $(echo) "quotes"`, "", "n",
		}},
		{Name: "step 2", Stdout: "/w/a/b.txt", Argv: []string{"/usr/bin/molrun", "x"}},
		{Name: "step 3", Argv: []string{"last"}},
	}
	if diff := cmp.Diff(want, run.Steps, withoutSpans); diff != "" {
		t.Errorf("steps (-want +got)\n%s", diff)
	}
	wantEnv := map[string]string{"THREADS": "4", "PLAIN": "4", "FRACTION": "0.50", "YES": "true", "PLACE": "/w:/w/out"}
	must.Equal(t, "environment", run.Env, wantEnv)
}

func TestNumbersAsArguments(t *testing.T) {
	a := parseOK(t, commandFile)
	for number, want := range map[string]string{"5.0": "5", "1e6": "1000000", "-0.25": "-0.25", "1e-3": "0.001", "0.1": "0.1", "-0": "0"} {
		normalized := checked(t, a, `{"text":"t","pdb":"a/b.pdb","number":`+number+`}`)
		run, err := a.Expand(normalized, placement.Resources{CPUs: 1}, commandPaths)
		if err != nil || run.Steps[0].Argv[2] != want {
			t.Errorf("%s becomes %q, %v; want %q", number, run.Steps[0].Argv[2], err, want)
		}
	}
}

func TestExpandFailsWithoutNamedValue(t *testing.T) {
	a := parseOK(t, commandFile)
	good := `{"flag":false,"list":[],"number":1,"object":{},"pdb":"a/b.pdb","text":"t"}`
	tests := []struct {
		name, settings, want string
		change               func(*Paths)
	}{
		{"no file", good, `the setting "pdb" has no file`, func(p *Paths) { p.Files = nil }},
		{"no setting", `{}`, `the setting "text" has no value`, func(*Paths) {}},
		{"no folder", good, "{out} has no path", func(p *Paths) { p.Out = "" }},
		{"no settings", `{`, "read normalized settings", func(*Paths) {}},
	}
	for _, tt := range tests {
		paths := commandPaths
		tt.change(&paths)
		must.Fail(t, tt.name, must.Error2(a.Expand([]byte(tt.settings), placement.Resources{}, paths)), tt.want)
	}
}

// Runs a real program to check that each element arrives as one argument.
func TestArgumentsReachProgramsUnchanged(t *testing.T) {
	a := parseOK(t, strings.Replace(head, `["true"]`, `["printf", "%s\\n", "{settings.a}", "{settings.b}"]`, 1)+
		"[[parameters]]\nname = \"a\"\ntype = \"string\"\nrequired = true\n[[parameters]]\nname = \"b\"\ntype = \"string\"\nrequired = true\n")
	normalized := checked(t, a, `{"a":"--help; $(id) *","b":"two  words \u00e9 'x'"}`)
	run, err := a.Expand(normalized, placement.Resources{CPUs: 1}, Paths{})
	must.OK(t, err)
	out, err := exec.Command(run.Steps[0].Argv[0], run.Steps[0].Argv[1:]...).Output()
	if want := "--help; $(id) *\ntwo  words é 'x'\n"; err != nil || string(out) != want {
		t.Errorf("printed %q, %v; want %q", out, err, want)
	}
}

func TestCommandAloneIsOneStep(t *testing.T) {
	a := parseOK(t, head+"stdout = \"{out}/log.txt\"\n")
	run, err := a.Expand([]byte(`{}`), placement.Resources{CPUs: 1}, commandPaths)
	want := []protocol.Step{{Argv: []string{"true"}, Stdout: "/w/out/log.txt", Span: &protocol.Span{Share: 1}}}
	must.OK(t, err)
	must.Equal(t, "steps", run.Steps, want)
	must.Equal(t, "variables", len(run.Env), 0)
}

// Runs the steps of a short algorithm file for an installed program and reads its metric.
func TestInstalledProgramIsWrapped(t *testing.T) {
	text, err := os.ReadFile("testdata/algorithms/word-count.toml")
	must.OK(t, err)
	a := parseOK(t, string(text))
	if lines := strings.Count(string(text), "\n"); lines > 30 {
		t.Errorf("%d lines", lines)
	}
	normalized := checked(t, a, string(a.Example.Settings))
	out := t.TempDir()
	run, err := a.Expand(normalized, placement.Resources{CPUs: 1}, Paths{Out: out, Files: map[string][]string{"text": {"builtin/examples/hst5.fasta"}}})
	must.OK(t, err)
	for _, s := range run.Steps {
		stdout, err := exec.Command(s.Argv[0], s.Argv[1:]...).Output()
		must.OK(t, err)
		must.OK(t, os.WriteFile(s.Stdout, stdout, 0o600))
	}
	if got, problems := a.Metrics.ReadMetrics(os.DirFS(out)); string(got) != `{"distinct_lines":2}` || problems != nil {
		t.Errorf("figures %s, problems %q", got, problems)
	}
}
