package algorithm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"molrun/app/algorithm/placement"
	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

const fileHead = "format = 1\ntype = \"demo\"\nversion = \"1\"\n"

const fileParameters = `
[[parameters]]
name = "method"
type = "string"
enum = ["fast", "exact"]
default = "fast"
[[parameters]]
name = "rounds"
type = "integer"
[[parameters]]
name = "residues"
type = "array"
items = { type = "integer" }
default = [3, 14]
[[parameters]]
name = "structure"
file = [".pdb", ".pdb.gz", ".cif"]
[[parameters]]
name = "opt"
type = "string"
`

const fileSteps = fileHead + `
[[steps]]
name = "prepare"
command = [
  "prep",
  { if = "settings.method == 'exact'", args = ["--exact"], else = ["--fast"] },
  { if = "settings.rounds in [2, 3.0]", args = ["-r", "{settings.rounds}"], else = ["-r", "1"] },
  { if = "files.structure endsWith '.cif'", args = ["--cif", "{files.structure}"] },
  { if = "files.structure endsWith '.pdb' or files.structure endsWith '.pdb.gz'", args = ["--pdb", "{files.structure}"] },
  { if = "gpus > 0", args = ["-nb", "gpu"], else = ["-nb", "cpu"] },
  { each = "settings.residues", args = ["--residue", "{item}"] },
  { each = "settings.residues", args = ["r{item}"], join = "+" },
]
folder = "{out}/run"
stdin = "{settings.method}\n{cpus}\n"
stdout = "{work}/prep.txt"
env = { METHOD = "{settings.method}", PLAIN = 4 }
ok = [0, 1]
fails_if = '0 molecules'
makes = ["{work}/receptor.pdbqt", "{out}/run/*.pdb"]
keep = ["{work}/*.pka"]

[[steps]]
name = "optional"
if = "settings.opt"
command = ["use", "{settings.opt}"]
stdin = "{work}/receptor.pdbqt"
fails_if = ["a", "b"]

[[failures]]
pattern = "bad"
message = "It was bad."
file = "{work}/*.log"
` + fileParameters

// withoutSpans ignores a step's share of the progress.
var withoutSpans = cmpopts.IgnoreFields(protocol.Step{}, "Span")

func expandWith(t *testing.T, a *File, settings string, needs placement.Resources, files map[string][]string) *Run {
	t.Helper()
	normalized := checked(t, a, settings)
	run, err := a.Expand(normalized, needs, Paths{Work: "/w", Out: "/w/out", In: "/w/in", Files: files})
	must.OK(t, err)
	return run
}

func TestKeysOfAStep(t *testing.T) {
	a := parseOK(t, fileSteps)
	got := expandWith(t, a, `{}`, placement.Resources{CPUs: 2}, nil)
	want := []protocol.Step{{
		Name:   "prepare",
		Argv:   strings.Fields("prep --fast -r 1 -nb cpu --residue 3 --residue 14 r3+r14"),
		Folder: "/w/out/run", Stdin: "/w/in/.stdin-1", Stdout: "/w/prep.txt",
		Env: map[string]string{"METHOD": "fast", "PLAIN": "4"},
		OK:  []int{0, 1}, FailsIf: []string{"0 molecules"},
		Makes: []string{"/w/receptor.pdbqt", "/w/out/run/*.pdb"}, Keep: []string{"/w/*.pka"},
	}}
	if diff := cmp.Diff(want, got.Steps, withoutSpans); diff != "" {
		t.Errorf("steps (-want +got)\n%s", diff)
	}
	must.Equal(t, "texts", got.Texts, map[string]string{"/w/in/.stdin-1": "fast\n2\n"})
	must.Equal(t, "files that are shown", got.Shown, []string{"/w/*.log"})
}

func TestConditions(t *testing.T) {
	a := parseOK(t, fileSteps)
	tests := []struct {
		settings, file string
		gpus           int
		want           string
	}{
		{`{"method":"exact","rounds":3,"residues":[]}`, "", 1, "prep --exact -r 3 -nb gpu"},
		{`{"rounds":0,"residues":[7]}`, "", 0, "prep --fast -r 1 -nb cpu --residue 7 r7"},
		{`{"structure":"x","residues":[]}`, "/w/in/structure.cif", 0, "prep --fast -r 1 --cif /w/in/structure.cif -nb cpu"},
		{`{"structure":"x","residues":[]}`, "/w/in/structure.pdb.gz", 0, "prep --fast -r 1 --pdb /w/in/structure.pdb.gz -nb cpu"},
	}
	for _, tt := range tests {
		files := map[string][]string{}
		if tt.file != "" {
			files["structure"] = []string{tt.file}
		}
		run := expandWith(t, a, tt.settings, placement.Resources{CPUs: 1, GPUs: tt.gpus}, files)
		must.Equal(t, tt.settings, strings.Join(run.Steps[0].Argv, " "), tt.want)
	}
	run := expandWith(t, a, `{"opt":"x y"}`, placement.Resources{}, nil)
	want := protocol.Step{Name: "optional", Argv: []string{"use", "x y"}, Stdin: "/w/receptor.pdbqt", FailsIf: []string{"a", "b"}}
	if len(run.Steps) != 2 {
		t.Fatalf("%d steps, want the optional one too", len(run.Steps))
	}
	if diff := cmp.Diff(want, run.Steps[1], withoutSpans); diff != "" {
		t.Errorf("step (-want +got)\n%s", diff)
	}
}

func TestConditionsReadWhatIsKnown(t *testing.T) {
	a := parseOK(t, fileHead+`
command = [
  "a", { if = "settings.opt != 'x' or files.structure endsWith '.cif'", args = ["{settings.opt}", "{files.structure}"] },
  { if = "derived.more > 3", args = ["{derived.more}"] },
  { if = "facts.bytes > 100", args = ["big"], else = ["small"] },
]
[derived]
more = "settings.rounds + 1"
`+fileParameters)
	if !a.UsesFacts() {
		t.Error("a job keeps no facts for its conditions")
	}
	files := map[string][]string{"structure": {"/in/structure.cif"}}
	for settings, want := range map[string]string{
		`{}`: "a small", `{"opt":"x","structure":"s"}`: "a x /in/structure.cif big", `{"opt":"y"}`: "a small", `{"rounds":3}`: "a 4 small", `{"rounds":2}`: "a small",
	} {
		facts, given := Facts{}, map[string][]string{}
		if strings.Contains(settings, "structure") {
			facts.AddFile("structure", 101, false)
			given = files
		}
		run, err := a.Expand(checked(t, a, settings), placement.Resources{CPUs: 1}, Paths{Work: "/w", Out: "/w/out", In: "/w/in", Files: given, Facts: facts})
		must.OK(t, err)
		must.Equal(t, settings, strings.Join(run.Steps[0].Argv, " "), want)
	}
}

func TestRunNeedsAStep(t *testing.T) {
	a := parseOK(t, fileHead+"[[steps]]\nif = \"settings.opt\"\ncommand = [\"true\"]\n[[parameters]]\nname = \"opt\"\ntype = \"string\"\n")
	must.Fail(t, "the error", must.Error2(a.Expand([]byte(`{}`), placement.Resources{}, commandPaths)), "no step applies")
}

const listParameter = "[[parameters]]\nname = \"list\"\nfile = [\".pdb\"]\ntype = \"array\"\n"

func TestListOfFiles(t *testing.T) {
	a := parseOK(t, fileHead+`command = ["a", { each = "files.list", args = ["-i", "{item}"] }, { if = "files.list", args = ["-n"] }, { each = "files.list", args = ["{item}"], join = "+" }]
[[texts]]
file = "{work}/list.txt"
text = """{{range .files.list}}{{.}}
{{end}}{{if not .files.list}}none{{end}}"""
`+listParameter)
	files := map[string][]string{"list": {"/w/in/list/b.pdb", "/w/in/list/a.pdb"}}
	run := expandWith(t, a, `{"list":["x/b.pdb","x/a.pdb"]}`, placement.Resources{}, files)
	if got, want := strings.Join(run.Steps[0].Argv, " "), "a -i /w/in/list/b.pdb -i /w/in/list/a.pdb -n /w/in/list/b.pdb+/w/in/list/a.pdb"; got != want {
		t.Errorf("command %s, want %s", got, want)
	}
	must.Equal(t, "text", run.Texts["/w/list.txt"], "/w/in/list/b.pdb\n/w/in/list/a.pdb\n")
	run = expandWith(t, a, `{}`, placement.Resources{}, nil)
	must.Equal(t, "without files", strings.Join(run.Steps[0].Argv, " ")+run.Texts["/w/list.txt"], "anone")
	for settings, want := range map[string]string{
		`{"list":"x/b.pdb"}`: "must be a list", `{"list":[]}`: "at least 1", `{"list":[5]}`: "must be text",
	} {
		if _, faults := a.CheckSettings(parseJSON(t, settings)); len(faults) != 1 || !strings.Contains(faults[0].Msg, want) {
			t.Errorf("%s: %v, want %q", settings, faults, want)
		}
	}
	must.Equal(t, "a cell", string(a.Parameters.Named("list").FromText("x/a.pdb").Raw), `["x/a.pdb"]`)
	must.Equal(t, "a cell of two", string(a.Parameters.Named("list").FromText(`["x", "y"]`).Raw), `["x", "y"]`)
}

// The text follows three lines, so it begins at line 4.
func TestMistakesInOtherSections(t *testing.T) {
	step := func(rest string) string { return "[[steps]]\ncommand = [\"a\"]\n" + rest }
	tests := []struct {
		name, text string
		want       []string
	}{
		{"image that is none", "command = [\"a\"]\n[container]\nimage = \"a b\"", []string{`6: image must be "docker://NAME@sha256:DIGEST"`}},
		{"image like an option", "command = [\"a\"]\n[container]\nimage = \"--privileged\"", []string{"6: image must be"}},
		{"image with half a digest", "command = [\"a\"]\n[container]\nimage = \"docker://a@sha256:12\"", []string{"6: image must be"}},
		{"image file elsewhere", "command = [\"a\"]\n[container]\nimage = \"boltz.sif\"", []string{`6: image "boltz.sif" must be an absolute path`}},
		{"modules beside an image", "command = [\"a\"]\nmodules = [\"b\"]\n[container]\nimage = \"a\"", []string{"5: modules applies to programs on the machine"}},
		{"module like an option", "command = [\"a\"]\nmodules = [\n\"a\",\n\"-v\"]", []string{`7: "-v" in modules must be the name of a module`}},
		{"conda by name", "command = [\"a\"]\nconda = \"boltz\"", []string{"5: conda must be the absolute path of an environment"}},
		{"makes elsewhere", step(`makes = ["/tmp/x"]`), []string{`6: each of makes must be a path below {out} or {work}`}},
		{"makes by a setting", step(`makes = ["{out}/{settings.method}"]`), []string{"6: each of makes must be a path"}},
		{"makes above", step(`makes = ["{out}/../x"]`), []string{"6: each of makes must be a path"}},
		{"other wildcards", step(`keep = ["{work}/[ab]"]`), []string{"6: each of keep must be a path"}},
		{"folder elsewhere", step(`folder = "/tmp"`), []string{"6: folder must be a path below {out} or {work}"}},
		{"empty complaint", step(`fails_if = ["a", ""]`), []string{"6: fails_if must not be empty"}},
		{"status", step(`ok = [256]`), []string{"6: each of ok must be between 0 and 255"}},
		{"optional stdin", step(`stdin = "{settings.opt}"`), []string{`6: the setting "opt" can be unset`}},
		{"key beside steps", "makes = [\"{out}/x\"]\n" + step(""), []string{"4: makes belongs in one of the [[steps]]"}},
		{"if of an unknown setting", step(`if = "settings.opd"`), []string{`6: no parameter is named "opd"; did you mean "opt"?`}},
		{"value that never is", `command = ["a", { if = "settings.method == 'slow'", args = [] }]`, []string{`4: the setting "method" can never be "slow"`}},
		{"extension that never is", `command = ["a", { if = "files.structure endsWith '.xyz'", args = [] }]`, []string{`4: the parameter "structure" does not accept files ending in ".xyz"`}},
		{"optional behind ??", `command = ["a", { if = "(settings.opt ?? 'x') == 'x'", args = ["{settings.opt}"] }]`, []string{`4: the setting "opt" can be unset`}},
		{"one of the values never is", `command = ["a", { if = "settings.method in ['fast', 'slow']", args = [] }]`, []string{`4: the setting "method" can never be "slow"`}},
		{"condition of two kinds", `command = ["a", { if = "settings.method > 1", args = [] }]`, []string{`4: if = "settings.method > 1": invalid operation: > (mismatched types string and int) (at character 17)`}},
		{"condition in no language", `command = ["a", { if = "settings.method is", args = [] }]`, []string{`4: if = "settings.method is": unexpected token`}},
		{"optional in else", `command = ["a", { if = "settings.opt", args = [], else = ["{settings.opt}"] }]`, []string{`4: the setting "opt" can be unset`}},
		{"each of no list", `command = ["a", { each = "settings.method", args = ["{item}"] }]`, []string{`4: each needs a list, but the setting "method" is not a list`}},
		{"each of an unknown setting", `command = ["a", { each = "settings.residuse", args = ["{item}"] }]`, []string{`4: no parameter is named "residuse"; did you mean "residues"?`}},
		{"each without args", `command = ["a", { each = "settings.residues" }]`, []string{"4: args is missing"}},
		{"item outside of a list", `command = ["a", "{item}"]`, []string{"4: {item} is not available here"}},
		{"extension in a check", "command = [\"a\"]\n[validate]\ncommand = [\"b\", { if = \"files.structure endsWith '.cif'\", args = [] }]", []string{"6: endsWith can't be used here"}},
		{"outputs of one name", "command = [\"a\"]\n[[outputs]]\nname = \"x\"\nfile = \"a\"\n[[outputs]]\nname = \"x\"\nfile = \"b\"", []string{`8: two outputs are named "x"`}},
		{"output outside", "command = [\"a\"]\n[[outputs]]\nname = \"x\"\nfile = \"../a\"", []string{`7: file "../a" must be a path below`}},
		{"failure's file outside", "command = [\"a\"]\n[[failures]]\npattern = \"a\"\nmessage = \"b\"\nfile = \"a.log\"", []string{"8: file must be a path below {out} or {work}"}},
		{"content of no kind", "command = [\"a\"]\n[[parameters]]\nname = \"x\"\nfile = [\".a\"]\ncontent = \"protein\"", []string{"8: content must be"}},
		{"bound without content", "command = [\"a\"]\n[[parameters]]\nname = \"x\"\nfile = [\".a\"]\nmax_records = 1", []string{"8: max_records needs content"}},
		{"bound of another content", "command = [\"a\"]\n[[parameters]]\nname = \"x\"\nfile = [\".a\"]\ncontent = \"structure\"\nmax_records = 1", []string{"9: max_records does not apply to structure; its limits are max_atoms"}},
		{"option of no command", "command = [\"a\"]\n[[parameters]]\nname = \"x\"\nfile = [\".a\"]\ncontent = \"structure\"\npdb = [\"--no-water\"]", []string{`9: pdb: "--no-water" is not an option of molrun engine pdb; valid options: --no-hetero, --standard, --no-hydrogens`}},
		{"bound of nothing", "command = [\"a\"]\n[[parameters]]\nname = \"x\"\nfile = [\".a\"]\ncontent = \"structure\"\nmax_atoms = 0", []string{"9: max_atoms must be between 1 and"}},
		{"content of no file", "command = [\"a\"]\n[[parameters]]\nname = \"x\"\ntype = \"string\"\ncontent = \"structure\"", []string{`8: unknown key "content"`}},
		{"list in a text", "command = [\"a\", \"{files.list}\"]\n" + listParameter, []string{`4: the parameter "list" is a list of files: write { each = "files.list"`}},
		{"list as a setting", "command = [\"a\", { each = \"settings.list\", args = [] }]\n" + listParameter, []string{`4: the parameter "list" is a file: write files.list`}},
		{"each of one file", "command = [\"a\", { each = \"files.structure\", args = [] }]", []string{`4: each needs a list, but the setting "structure" is not a list: write {files.structure}`}},
		{"each of a file that is none", "command = [\"a\", { each = \"files.residues\", args = [] }]", []string{`4: the parameter "residues" is not a file: write settings.residues`}},
		{"extension of a list", "command = [\"a\", { if = \"files.list endsWith '.pdb'\", args = [] }]\n" + listParameter, []string{"4: if = \"files.list endsWith '.pdb'\": invalid operation: endsWith (mismatched types"}},
		{"too many files", "command = [\"a\"]\n" + listParameter + "maxItems = 1001\n", []string{"9: maxItems must be between 1 and 1000"}},
		{"fewer than least", "command = [\"a\"]\n" + listParameter + "minItems = 3\nmaxItems = 2\n", []string{"10: maxItems is less than minItems"}},
		{"keyword of a list", "command = [\"a\"]\n" + listParameter + "uniqueItems = true\n", []string{"9: uniqueItems does not apply to a file"}},
		{"bounds of one file", "command = [\"a\"]\n[[parameters]]\nname = \"x\"\nfile = [\".a\"]\nminItems = 1", []string{"8: minItems does not apply to a file"}},
		{"fact of no file", "command = [\"a\"]\n[resources]\nmemory = \"facts.residuse\"", []string{"6: memory = \"facts.residuse\" is neither an amount nor an expression: unknown field residuse"}},
		{"fact of a file without content", "command = [\"a\"]\n[derived]\nx = \"facts.structure.residues\"", []string{"6: x = \"facts.structure.residues\": unknown field residues"}},
		{"resource that is a text", "command = [\"a\"]\n[resources]\ncpus = \"settings.method\"", []string{"6: cpus = \"settings.method\" is not a number"}},
		{"resource with a value in place of none, once", "command = [\"a\"]\n[resources]\ncpus = \"(settings.rounds ?? 1) + settings.rounds\"", []string{`6: cpus reads the parameter "rounds", which can be unset`}},
		{"resource without a value", "command = [\"a\"]\n[resources]\ncpus = \"settings.rounds + 1\"", []string{`6: cpus reads the parameter "rounds", which can be unset`}},
		{"expected seconds that are a text", "command = [\"a\"]\n[estimate]\nexpected_seconds = \"20\"", []string{"6: expected_seconds must be a number of seconds from 0.001 on, such as 20"}},
		{"seconds per size that are a text", "command = [\"a\"]\n[estimate]\nsize = \"1\"\nseconds_per_size = \"20\"", []string{"7: seconds_per_size must be a number of seconds from 1e-30 on, such as 2e-07"}},
		{"seconds per size of nothing", "command = [\"a\"]\n[estimate]\nseconds_per_size = 2e-7", []string{"5: [estimate] needs size"}},
		{"seconds in two ways", "command = [\"a\"]\n[estimate]\nsize = \"1\"\nexpected_seconds = 3\nseconds_per_size = 2e-7", []string{"8: give either expected_seconds or seconds_per_size"}},
		{"expected seconds below any", "command = [\"a\"]\n[estimate]\nexpected_seconds = 0", []string{"6: expected_seconds must be a number"}},
		{"expected seconds without end", "command = [\"a\"]\n[estimate]\nexpected_seconds = 1e12", []string{"6: expected_seconds must be a number"}},
		{"file in a size", "command = [\"a\"]\n[estimate]\nsize = \"1 + files.structure\"", []string{"6: size \"1 + files.structure\": only conditions read files.structure: write facts.structure.bytes for the bytes of a file (at character 11)"}},
		{"size that is a text", "command = [\"a\"]\n[estimate]\nsize = \"settings.method + 'x'\"", []string{"6: size \"settings.method + 'x'\": it is not a number"}},
		{"metric of two files", "command = [\"a\"]\n[metrics]\nx = { file = \"a\", pattern = \"(a)\", json = \"b\" }", []string{`6: the metric "x" has both file and json`}},
		{"metric that counts and finds", "command = [\"a\"]\n[metrics]\nx = { file = \"a\", pattern = \"(a)\", count = \"a\" }", []string{`6: the metric "x" has both pattern and count`}},
		{"column of no table", "command = [\"a\"]\n[metrics]\nx = { file = \"a\", pattern = \"(a)\", column = \"c\" }", []string{`6: column of the metric "x" requires "table"`}},
		{"table without column", "command = [\"a\"]\n[metrics]\nx = { table = \"a.tsv\", take = \"min\" }", []string{`6: the metric "x" needs column`}},
		{"unknown statistic", "command = [\"a\"]\n[metrics]\nx = { table = \"a.tsv\", column = \"c\", take = \"median\" }", []string{"6: take must be"}},
		{"no program", "command = [\"a\"]\nprograms = [\"cp -r\"]", []string{`5: "cp -r" in programs must be the name of a program, such as "obabel", or an absolute path`}},
		{"json without a place", "command = [\"a\"]\n[metrics]\nx = { json = \"a.json\" }", []string{`6: the metric "x" needs at`}},
		{"place without a slash", "command = [\"a\"]\n[metrics]\nx = { json = \"a.json\", at = \"ptm\" }", []string{"6: at must begin with /"}},
		{"digits", "command = [\"a\"]\n[metrics]\nx = { digits = 16 }", []string{"6: digits must be between 0 and 15"}},
		{"error of nothing", "command = [\"a\"]\n[metrics]\nx = { error_of = \"y\" }", []string{`6: error_of must name another metric of this file that is not itself an error, got "y"`}},
		{"error of an error", "command = [\"a\"]\n[metrics]\nx = { error_of = \"x\" }", []string{`6: error_of must name another metric`}},
		{"error of another unit", "command = [\"a\"]\n[metrics]\ny = { unit = \"nm\" }\nx = { error_of = \"y\", unit = \"Å\" }", []string{`7: the error x must have the unit of y, "nm", got "Å"`}},
		{"two errors", "command = [\"a\"]\n[metrics]\ny = { title = \"y\" }\nx = { error_of = \"y\" }\nz = { error_of = \"y\" }", []string{`8: y already has the error x`}},
		{"reading of falling values", "command = [\"a\"]\n[metrics]\nx = { reading = [{ from = 1, words = \"high\" }, { from = 0.5, words = \"low\" }] }", []string{`6: reading must list ranges in ascending order: each but the first needs a from above the previous one`}},
		{"reading without words", "command = [\"a\"]\n[metrics]\nx = { reading = [{ from = 1 }] }", []string{`6: `}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkMistakes(t, fileHead+tt.text+fileParameters, tt.want...) })
	}
}

const factsFile = fileHead + `
command = ["a", "{derived.rounds}"]
[[parameters]]
name = "structure"
file = [".pdb"]
content = "protein-structure"
[[parameters]]
name = "list"
file = [".fasta"]
type = "array"
content = "protein-sequences"
[[parameters]]
name = "ns"
type = "number"
default = 2
[derived]
rounds = "ceil(facts.structure.residues / 100)"
[resources]
memory = "1 + 0.5 * facts.atoms"
cpus = "min(4, 1 + facts.list.files)"
[estimate]
size = "settings.ns * facts.structure.residues"
[[rules]]
that = "facts.records < 5"
message = "must have fewer than five sequences"
`

func TestFactsOfFilesDecideAboutAJob(t *testing.T) {
	a := parseOK(t, factsFile)
	settings, faults := a.CheckSettings(parseJSON(t, `{"structure":"a.pdb","list":["a.fasta","b.fasta"]}`))
	if faults != nil {
		t.Fatalf("rules about files that are not read yet: %v", faults)
	}
	facts := Facts{}
	facts.AddFile("structure", 1000, false)
	facts.AddFile("list", 10, false)
	facts.AddFile("list", 20, false)
	facts.addCounts("structure", map[string]float64{"residues": 250, "atoms": 4, "chains": 1})
	facts.addCounts("list", map[string]float64{"records": 2, "residues": 30, "longest": 20})
	facts.addCounts("list", map[string]float64{"records": 2, "residues": 50, "longest": 40})
	must.Equal(t, "facts of a list", facts["list"], map[string]float64{"files": 2, "bytes": 30, "records": 4, "residues": 80, "longest": 40})
	needs, faults := a.Needs(settings, facts)
	if want := (placement.Resources{CPUs: 3, MemoryBytes: 3 << 30}); faults != nil || needs != want {
		t.Errorf("needs %+v, %v; want %+v", needs, faults, want)
	}
	must.Equal(t, "size", a.Size(settings, facts), 500)
	run, err := a.Expand(Normalize(settings), needs, Paths{Work: "/w", Facts: facts})
	if err != nil || run.Steps[0].Argv[1] != "3" {
		t.Errorf("%v, %v, want 3 rounds", run, err)
	}
	if faults := a.factRules(settings, facts); faults != nil {
		t.Errorf("faults %v", faults)
	}
	facts.addCounts("list", map[string]float64{"records": 1})
	if faults := a.factRules(settings, facts); len(faults) != 1 || faults[0].Loc[0] != "list" {
		t.Errorf("faults %v, want one of the list", faults)
	}

	// Files that another job has not created yet count as 0, and do not violate any rule.
	facts.AddFile("list", 0, true)
	if faults := a.factRules(settings, facts); faults != nil {
		t.Errorf("faults of files that are to come: %v", faults)
	}
	if needs, _ := a.Needs(settings, facts); needs.CPUs != 1 {
		t.Errorf("%d CPUs for files that are to come", needs.CPUs)
	}
	// Metadata of files that are not given is 0.
	if needs, faults := a.Needs(parseJSON(t, `{"ns":1}`), nil); faults != nil || needs.MemoryBytes != 1<<30 {
		t.Errorf("without files: %+v, %v", needs, faults)
	}
	facts.addCounts("structure", map[string]float64{"atoms": 1e9})
	if _, faults := a.Needs(settings, facts); len(faults) != 1 || faults[0].Loc[0] != "structure" || !strings.Contains(faults[0].Msg, "1 + 0.5 * facts.atoms") {
		t.Errorf("faults %v, want one of the structure", faults)
	}
}
