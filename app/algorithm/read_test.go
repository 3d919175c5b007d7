package algorithm

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/schema"
	"molrun/app/test/must"
)

// head holds the required keys of an algorithm file, on lines 1 to 4.
const head = `format = 1
type = "demo"
version = "1"
command = ["true"]
`

func parseOK(t testing.TB, text string) *File {
	t.Helper()
	a, mistakes := Parse("demo.toml", []byte(text))
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	return a
}

// checkMistakes compares the errors in a file with the expected ones, given as "line:
// part of message".
func checkMistakes(t *testing.T, text string, want ...string) {
	t.Helper()
	a, mistakes := Parse("demo.toml", []byte(text))
	if a != nil && len(mistakes) > 0 {
		t.Error("an algorithm in spite of mistakes")
	}
	fit := len(mistakes) == len(want)
	for i := 0; fit && i < len(want); i++ {
		line, part, _ := strings.Cut(want[i], ": ")
		fit = fmt.Sprint(mistakes[i].Line) == line && strings.Contains(mistakes[i].Msg, part) && mistakes[i].File == "demo.toml"
	}
	if !fit {
		t.Errorf("mistakes of\n%s\ngot  %q\nwant %q", text, mistakes, want)
	}
}

// Tests every error that a file can have, with its line. The text follows head, so it
// begins at line 5.
func TestMistakesBelowHead(t *testing.T) {
	const parameter = "[[parameters]]\nname = \"n\"\ntype = \"integer\"\n" // lines 5 to 7
	tests := []struct {
		name, text string
		want       []string
	}{
		{"unknown key", "retris = 1", []string{`5: unknown key "retris" in this file; did you mean "retries"?`}},
		{"unknown key like no other", "zzzzzzzzzzzzz = 1", []string{"5: valid keys are format, type"}},
		{"top key in a table", "[resources]\ncpus = 1\nretries = 2", []string{`7: "retries" does not belong to [resources]: move it above`}},
		{"text for a flag", `default = "yes"`, []string{"5: default must be true or false, got a text"}},
		{"title of two lines", `title = "a\nb"`, []string{"5: title must be one line"}},
		{"number in a list of texts", "cite = [\n\"a\",\n7]", []string{"7: each of cite must be a text"}},
		{"unknown executor", `executor = "pbs"`, []string{`5: executor must be "any", "local" or "slurm", got "pbs"`}},
		{"partition that no cluster has", "[slurm]\nqos = \"a\"\npartition = \"a b\"", []string{`7: partition: "a b" is not`}},
		{"option that is none", "[slurm]\noptions = [\"nice\"]", []string{`6: options: "nice" is not an option`}},
		{"option of two words", "[slurm]\noptions = [\"--nice 5\"]", []string{`6: options: "--nice 5" is not an option`}},
		{"option that molrun sets", "[slurm]\noptions = [\"--output=/tmp/x\"]", []string{"6: options: --output can't be set here"}},
		{"option that molrun sets, cut off", "[slurm]\noptions = [\"--expor=ALL\"]", []string{"6: options: --expor can't be set here, because molrun sets it (--export)"}},
		{"negative retries", `retries = -1`, []string{"5: retries must be between 0 and 100, got -1"}},
		{"fraction of a retry", `retries = 1.5`, []string{"5: retries must be a whole number"}},
		{"no length of time", `max_runtime = "soon"`, []string{"5: max_runtime"}},
		{"no time at all", `max_runtime = "0s"`, []string{"5: max_runtime must be between 1s and 3650d"}},
		{"negative time", `max_runtime = "-1h"`, []string{"5: max_runtime must be between"}},
		{"number for a time", `max_runtime = 60`, []string{"5: max_runtime must be a text"}},
		{"date for a text", "title = 2024-01-01", []string{"5: write a date or time as text"}},
		{"infinity", parameter + "default = inf", []string{"8: the number inf is out of range"}},
		{"huge number", parameter + "maximum = 1e999", []string{"8: "}},
		{"NUL", `title = "a\u0000b"`, []string{"5: title must not contain a NUL"}},

		{"both command and steps", "[[steps]]\ncommand = [\"true\"]", []string{"4: write either command or [[steps]]"}},
		{"empty sandbox path", "[sandbox]\nread = [\"tools\"]", []string{`6: "tools" in sandbox.read must be an absolute path`}},
		{"variable's name", "[env]\n\"A-B\" = \"x\"", []string{`6: "A-B" is not a valid name for an environment variable`}},
		{"variable's value", "[env]\nA = [1]", []string{"6: A must be a text, got a list"}},
		{"variable without value", parameter + "[env]\nA = \"{settings.n}\"", []string{`9: the setting "n" can be unset`}},

		{"unsafe name", "[[parameters]]\nname = \"a b\"\ntype = \"string\"", []string{`6: name "a b" is not allowed`}},
		{"parameter twice", parameter + parameter, []string{`8: the parameter "n" is defined twice, first at line 5`}},
		{"parameters as a table", "[parameters]\nname = \"n\"", []string{"5: parameters must be a list"}},
		{"no type", "[[parameters]]\nname = \"n\"", []string{"5: type is missing"}},
		{"unknown type", "[[parameters]]\nname = \"n\"\ntype = \"strng\"", []string{`7: unknown type "strng"; did you mean "string"?`}},
		{"unknown type among others", "[[parameters]]\nname = \"n\"\ntype = [\"string\",\n\"float\"]", []string{`8: unknown type "float"`}},
		{"unknown word", parameter + "minimun = 1", []string{`8: unknown key "minimun"; did you mean "minimum"?`}},
		{"unknown word like no other", parameter + "wobblyhyphenation = 1", []string{"8: neither a parameter key"}},
		{"unknown word below", "[[parameters]]\nname = \"n\"\ntype = \"array\"\nitems = { type = \"string\",\nminLenght = 1 }", []string{`9: unknown key "minLenght"; did you mean "minLength"?`}},
		{"unknown word below properties", "[[parameters]]\nname = \"n\"\ntype = \"object\"\nproperties.a.tipe = \"string\"", []string{`8: unknown key "tipe"; did you mean "type"?`}},
		{"word of another type", parameter + "minLength = 1", []string{"8: minLength has no effect on a value of type integer"}},
		{"word with a wrong value", parameter + "minimum = \"1\"", []string{"8: minimum must be a number, got text"}},
		{"multiple of nothing", parameter + "multipleOf = 0", []string{"8: multipleOf must be more than 0, got 0"}},
		{"limits that cross", parameter + "minimum = 5\nmaximum = 2", []string{"8: minimum 5 is above maximum 2"}},
		{"bad pattern", "[[parameters]]\nname = \"n\"\ntype = \"string\"\npattern = \"(\"", []string{"8: pattern is not a valid regular expression: missing closing )"}},
		{"bad pattern below", "[[parameters]]\nname = \"n\"\ntype = \"object\"\npatternProperties = { \"[\" = {} }", []string{"8: pattern is not a valid regular expression"}},
		{"reference to elsewhere", "[[parameters]]\nname = \"n\"\n\"$ref\" = \"https://example.org/x\"", []string{"5: is not in this file"}},
		{"required members", "[[parameters]]\nname = \"n\"\ntype = \"object\"\nrequired = [\"a\"]", []string{"8: for members of an object write allOf"}},
		{"required with default", parameter + "required = true\ndefault = 1", []string{"9: a required parameter needs no default"}},
		{"default of another type", parameter + "default = \"1\"", []string{"8: the default must be a whole number, got text"}},
		{"default out of range", parameter + "maximum = 3\ndefault = 4", []string{"9: the default must be at most 3, got 4"}},
		{"default with a bad item", "[[parameters]]\nname = \"n\"\ntype = \"array\"\nitems = { type = \"integer\" }\ndefault = [1,\n\"x\"]", []string{"10: the default must be a whole number"}},
		{"choice that cannot be", "[[parameters]]\nname = \"n\"\ntype = \"string\"\nenum = [\"a\",\n5]", []string{"9: this value can never be chosen: it must be text"}},
		{"no extension", "[[parameters]]\nname = \"n\"\nfile = []", []string{"7: file needs at least one extension"}},
		{"extension without dot", "[[parameters]]\nname = \"n\"\nfile = [\".a\", \"pdb\"]", []string{`7: "pdb" is not a file extension`}},
		{"default of a file", "[[parameters]]\nname = \"n\"\nfile = [\".a\"]\ndefault = \"x\"", []string{"8: a file cannot have a default"}},
		{"word for a file", "[[parameters]]\nname = \"n\"\nfile = [\".a\"]\nminLength = 1", []string{"8: minLength does not apply to a file"}},
		{"unknown key of a file", "[[parameters]]\nname = \"n\"\nfile = [\".a\"]\nhlep = \"x\"", []string{`8: unknown key "hlep"; did you mean "help"?`}},

		{"no CPU", "[resources]\ncpus = 0", []string{"6: cpus must be between 1 and"}},
		{"CPUs from nothing", "[resources]\ncpus = \"{settings.x}\"", []string{`6: no parameter is named "x"`}},
		{"CPUs from a near name", parameter + "[resources]\ncpus = \"{settings.m}\"", []string{`9: no parameter is named "m"; did you mean "n"?`}},
		{"CPUs from a text", parameter + "default = 1\n[resources]\ncpus = \"{settings.n}x\"", []string{`10: cpus must be a number or "{settings.NAME}"`}},
		{"CPUs that may be missing", parameter + "[resources]\ncpus = \"{settings.n}\"", []string{`9: cpus comes from the parameter "n", which can be unset`}},
		{"CPUs of another type", "[[parameters]]\nname = \"n\"\ntype = \"number\"\ndefault = 1\n[resources]\ncpus = \"{settings.n}\"", []string{`10: cpus comes from the parameter "n", whose type must be "integer"`}},
		{"CPUs of a bad default", parameter + "default = 0\n[resources]\ncpus = \"{settings.n}\"", []string{`10: cpus comes from the parameter "n", whose default must be a whole number from 1 to`}},
		{"no size", "[resources]\nmemory = \"lots\"", []string{`6: memory = "lots" is neither an amount nor an expression: unknown name lots; write settings.NAME for a setting (at character 1); write a size like "500MB"`}},
		{"ambiguous size", "[resources]\nmemory = \"2G\"", []string{`6: memory = "2G" is neither an amount nor an expression: bad number syntax`}},
		{"size not a number", "[resources]\nmemory = \"nan\"", []string{`6: memory = "nan" is neither an amount nor an expression`}},
		{"negative size", "[resources]\nmemory = -1", []string{"6: memory must be between 0 and"}},
		{"GPUs from a file", "[[parameters]]\nname = \"n\"\nfile = [\".a\"]\n[resources]\ngpus = \"{settings.n}\"", []string{`9: gpus comes from the parameter "n", whose type must be "integer"`}},

		{"validator with output", "[validate]\ncommand = [\"{molrun}\", \"{out}\"]", []string{"6: {out} is not available here"}},

		{"metric without pattern", "[metrics]\na = { file = \"x\" }", []string{`6: the metric "a" needs both file and pattern`}},
		{"metric of nothing", "[metrics]\na = {}", []string{`6: the metric "a" is empty`}},
		{"metric as a text", "[metrics]\na = \"x\"", []string{"6: a must be a table"}},
		{"metric's name", "[metrics]\n\"a b\" = { title = \"x\" }", []string{`6: "a b" is not a valid name for a metric`}},
		{"metric outside", "[metrics]\na = { file = \"../x\", pattern = \"(a)\" }", []string{`6: file "../x" must be a path below the output folder`}},
		{"metric without group", "[metrics]\na = { file = \"x\", pattern = \"a\" }", []string{"6: pattern needs a group"}},
		{"metric's bad pattern", "[metrics]\na = { file = \"x\", pattern = \"(\" }", []string{"6: pattern is not a valid regular expression"}},
		{"metric's better", "[metrics]\na = { title = \"x\", better = \"more\" }", []string{`6: better must be "higher" or "lower"`}},
		{"metric's same", "[metrics]\na = { title = \"x\", same = [\"nothing\"] }", []string{`6: "nothing" in same of the metric "a" is not a parameter`}},
		{"metric's rank", "[metrics]\na = { rank = \"first\" }", []string{"6: rank must be true or false"}},
		{"two metrics that rank", "[metrics]\na = { rank = true }\nb = { rank = false }\nc = { rank = true }", []string{"8: a already has rank = true"}},
		{"unknown metric key", "[metrics]\na = { titel = \"x\" }", []string{`6: unknown key "titel" in a; did you mean "title"?`}},

		{"failure of no words", "[[failures]]\npattern = \"a\"\nmessage = \" \"", []string{"7: message must say what happened"}},
		{"failure's bad pattern", "[[failures]]\npattern = \"(\"\nmessage = \"a\"", []string{"6: pattern is not a valid regular expression"}},
		{"failure's missing group", "[[failures]]\npattern = \"(a)\"\nmessage = \"$1 $2\"", []string{"7: $2 in message: pattern has 1 group"}},
		{"failure's huge group", "[[failures]]\npattern = \"(a)\"\nmessage = \"${99999999999999999999}\"", []string{"7: ${99999999999999999999} in message"}},

		{"example's fault", parameter + "[example]\nsettings = { n = 1.5 }", []string{"9: the example's settings: n must be a whole number, got a number"}},
		{"example's unknown setting", parameter + "[example.settings]\nm = 1", []string{`9: the example's settings: m demo has no setting "m"; did you mean "n"?`}},
		{"example lacks a setting", parameter + "required = true\n[example]\nsettings = {}", []string{"10: the example's settings: n is required"}},
		{"example's file elsewhere", "[[parameters]]\nname = \"n\"\nfile = [\".a\"]\n[example]\nsettings = { n = \"example:../x.a\" }", []string{"9: must be example:NAME"}},
		{"example's file of another kind", "[[parameters]]\nname = \"n\"\nfile = [\".a\"]\n[example]\nsettings = { n = \"example:x.b\" }", []string{"9: must be example:NAME"}},
		{"expected file outside", "[example]\nsettings = {}\nexpect = { files = [\"/etc/passwd\"] }", []string{`7: "/etc/passwd" is not a path below`}},
		{"expected range", "[example]\nsettings = {}\nexpect.metrics.a = [2, 1]", []string{"7: a must be a range of two numbers"}},
		{"unknown expectation", "[example]\nsettings = {}\nexpect = { metric = {} }", []string{`7: unknown key "metric" in expect; did you mean "metrics"?`}},

		{"several at once", "retris = 1\n[[parameters]]\nname = \"n\"\ntype = \"integer\"\nminimun = 1\nminimum = \"a\"\n[resources]\nmemory = \"x\"\n[[failures]]\nmessage = \"a\"", []string{
			`5: unknown key "retris"`, `9: unknown key "minimun"`, "10: minimum must be a number", `12: memory = "x"`, "13: pattern is missing",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkMistakes(t, head+tt.text, tt.want...) })
	}
}

func TestMistakesInHead(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", []string{"1: format is missing", "1: type is missing", "1: version is missing", "1: nothing to run"}},
		{"newer format", "format = 2\nnews = 1", []string{"1: format 2 is newer than this version of molrun can read (1): upgrade molrun"}},
		{"older format", strings.Replace(head, "format = 1", "format = 0", 1), []string{"1: format must be 1, got 0"}},
		{"format as a text", strings.Replace(head, "format = 1", `format = "1"`, 1), []string{"1: format must be a number"}},
		{"unsafe type", strings.Replace(head, "demo", "../x", 1), []string{`2: type "../x" is not allowed`}},
		{"upper case type", strings.Replace(head, "demo", "Demo", 1), []string{`2: type "Demo" is not allowed`}},
		{"long type", strings.Replace(head, "demo", strings.Repeat("a", 65), 1), []string{"2: is not allowed"}},
		{"number for a version", strings.Replace(head, `"1"`, `1.0`, 1), []string{"3: version must be a text, got a number"}},
		{"version with a space", strings.Replace(head, `"1"`, `"1 0"`, 1), []string{`3: version "1 0" is not allowed`}},
		{"too large", strings.Repeat("#", maxFile+1), []string{"1: the file has"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkMistakes(t, tt.text, tt.want...) })
	}
}

// The text follows three lines, so it begins at line 4.
func TestMistakesInCommands(t *testing.T) {
	const top = "format = 1\ntype = \"demo\"\nversion = \"1\"\n"
	const parameters = "\n[[parameters]]\nname = \"opt\"\ntype = \"string\"\n[[parameters]]\nname = \"pdb\"\nfile = [\".pdb\"]\n" +
		"[[parameters]]\nname = \"nul\"\ntype = [\"string\", \"null\"]\nrequired = true\n"
	tests := []struct {
		name, command string
		want          []string
	}{
		{"empty command", `command = []`, []string{"4: command needs at least the name of a program"}},
		{"empty program", `command = [""]`, []string{"4: command must begin with the name of a program"}},
		{"relative program", `command = ["bin/x"]`, []string{`4: the program "bin/x" must be a plain name`}},
		{"setting as program", `command = ["{settings.opt}"]`, []string{`4: the setting "opt" can be unset`, "4: a setting cannot choose the program"}},
		{"conditional program", `command = [{ if = "settings.opt", args = ["a"] }]`, []string{"4: command must begin with the name of a program"}},
		{"number as an element", "command = [\"a\",\n5]", []string{"5: each of command must be a text in quotes"}},
		{"unknown placeholder", "command = [\"a\",\n\"{outt}\"]", []string{"5: unknown placeholder {outt}; did you mean {out}?"}},
		{"placeholder like no other", `command = ["awk", "{print $1}"]`, []string{"4: unknown placeholder {print $1}; double a literal brace"}},
		{"misspelled kind", `command = ["a", "{setings.opt}"]`, []string{"4: unknown placeholder {setings.opt}; did you mean {settings.opt}?"}},
		{"kind without name", `command = ["a", "{settings}", "{files.}"]`, []string{"4: {settings} needs the name", "4: {files.} needs the name"}},
		{"open brace", `command = ["a", "{out"]`, []string{`4: unmatched brace in "{out"`}},
		{"closing brace", `command = ["a", "out}"]`, []string{`4: unmatched brace in "out}"`}},
		{"unknown setting", `command = ["a", "{settings.opd}"]`, []string{`4: no parameter is named "opd"; did you mean "opt"?`}},
		{"unknown file", `command = ["a", "{files.zzzzzzz}"]`, []string{`4: no parameter is named "zzzzzzz"`}},
		{"file that is none", `command = ["a", { if = "settings.opt", args = ["{files.opt}"] }]`, []string{`4: the parameter "opt" is not a file: write {settings.opt}`}},
		{"setting that is a file", `command = ["a", { if = "settings.pdb", args = ["{settings.pdb}"] }]`, []string{`4: the parameter "pdb" is a file: write {files.pdb}`}},
		{"optional setting", `command = ["a", "{settings.opt}"]`, []string{`4: the setting "opt" can be unset: put it into { if = "settings.opt"`}},
		{"optional file", `command = ["a", "{files.pdb}"]`, []string{`4: the setting "pdb" can be unset`}},
		{"setting that may be null", `command = ["a", "{settings.nul}"]`, []string{`4: the setting "nul" can be unset`}},
		{"optional within another if", `command = ["a", { if = "settings.pdb", args = ["{settings.opt}"] }]`, []string{`4: the setting "opt" can be unset`}},
		{"if without args", `command = ["a", { if = "settings.opt" }]`, []string{"4: a conditional part needs both"}},
		{"args without if", `command = ["a", { args = ["x"] }]`, []string{"4: a conditional part needs both"}},
		{"if of an unknown setting", `command = ["a", { if = "settings.opd", args = [] }]`, []string{`4: no parameter is named "opd"`}},
		{"if of no setting", `command = ["a", { if = "opt", args = [] }]`, []string{`4: if = "opt": unknown name opt; did you mean settings.opt? (at character 1)`}},
		{"if of another kind", `command = ["a", { if = true, args = [] }]`, []string{"4: if must be a text"}},
		{"unknown key beside if", `command = ["a", { if = "settings.opt", args = [], els = [] }]`, []string{`4: unknown key "els" in this part of command; did you mean "else"?`}},
		{"number in args", `command = ["a", { if = "settings.opt", args = [1] }]`, []string{"4: each of args must be a text"}},
		{"NUL in an argument", `command = ["a", "\u0000"]`, []string{"4: an argument must not contain a NUL"}},
		{"output elsewhere", "command = [\"a\"]\nstdout = \"/tmp/x\"", []string{"5: stdout must be a file below {out} or {work}"}},
		{"output above", "command = [\"a\"]\nstdout = \"{out}/../x\"", []string{"5: stdout must be a file below"}},
		{"output to the folder", "command = [\"a\"]\nstdout = \"{out}/\"", []string{"5: stdout must be a file below"}},
		{"output by a setting", "command = [\"a\"]\nstdout = \"{out}/{settings.nul}\"", []string{"5: stdout must be a file below"}},
		{"no step", "steps = []", []string{"4: [[steps]] is empty"}},
		{"steps of one name", "[[steps]]\nname = \"a\"\ncommand = [\"a\"]\n[[steps]]\nname = \"a\"\ncommand = [\"a\"]", []string{`7: two steps are named "a"`}},
		{"steps of one output", "[[steps]]\ncommand = [\"a\"]\nstdout = \"{out}/x\"\n[[steps]]\ncommand = [\"a\"]\nstdout = \"{out}/x\"", []string{"9: an earlier step also writes to {out}/x"}},
		{"stdout beside steps", "stdout = \"{out}/x\"\n[[steps]]\ncommand = [\"a\"]", []string{"4: stdout belongs in one of the [[steps]]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkMistakes(t, top+tt.command+parameters, tt.want...) })
	}
}

func TestDefaultsOfAFile(t *testing.T) {
	a := parseOK(t, head)
	if a.Title != "demo" || a.Executor != "any" || a.Retries != 0 || a.MaxRuntime != defaultMaxRuntime || a.Default || a.Resumable {
		t.Errorf("got %+v", a)
	}
	needs, faults := a.Needs(parseJSON(t, `{}`), nil)
	if want := (placement.Resources{CPUs: 1, MemoryBytes: 1 << 30}); needs != want || faults != nil {
		t.Errorf("needs %+v %v, want %+v", needs, faults, want)
	}
	if len(a.Digest) != 64 || string(a.Source) != head {
		t.Errorf("digest %q of source %q", a.Digest, a.Source)
	}
}

func TestEverySchemaWordIsAccepted(t *testing.T) {
	a := parseOK(t, head+`
[[parameters]]
name = "number"
type = "number"
minimum = 1
maximum = 9
exclusiveMinimum = 0
exclusiveMaximum = 10
multipleOf = 0.5
description = "d"
examples = [1]
deprecated = false
readOnly = false
writeOnly = false
"$comment" = "c"

[[parameters]]
name = "text"
type = "string"
minLength = 1
maxLength = 9
pattern = "^a"
format = "email"
contentEncoding = "base64"
contentMediaType = "application/json"
contentSchema = { type = "object" }

[[parameters]]
name = "list"
type = "array"
minItems = 1
maxItems = 3
uniqueItems = true
prefixItems = [{ type = "string" }]
items = { "$ref" = "#/$defs/atom" }
contains = { const = 1 }
minContains = 1
maxContains = 2
unevaluatedItems = false
"$defs" = { atom = { type = "integer", "$anchor" = "x" } }

[[parameters]]
name = "object"
type = "object"
minProperties = 1
maxProperties = 5
properties = { a = { type = "string", title = "t", default = "x" } }
patternProperties = { "^b" = { type = "integer" } }
additionalProperties = { type = "boolean" }
unevaluatedProperties = false
propertyNames = { maxLength = 3 }
dependentRequired = { a = ["b"] }
dependentSchemas = { a = { required = ["b"] } }
if = { required = ["a"] }
then = { required = ["b"] }
else = { required = ["c"] }
allOf = [{ required = ["c"] }]
anyOf = [{ required = ["c"] }, { required = ["d"] }]
oneOf = [{ required = ["c"] }, { required = ["d"] }]
not = { required = ["e"] }

[[parameters]]
name = "choice"
enum = ["a", 1, true]

[[parameters]]
name = "fixed"
const = "v"

[[parameters]]
name = "tree"
type = "object"
"$dynamicAnchor" = "node"
properties = { children = { type = "array", items = { "$dynamicRef" = "#node" } } }
`)
	used := map[string]bool{}
	for _, word := range schema.Words() {
		used[word] = word == "title" || word == "default" || word == "required" // used below a property
		for _, p := range a.Parameters {
			used[word] = used[word] || strings.Contains(string(p.Schema), `"`+word+`":`)
		}
		if !used[word] {
			t.Errorf("%s is in no schema", word)
		}
	}
	compileSettingsSchema(t, a)
}

func FuzzParseAlgorithm(f *testing.F) {
	f.Add([]byte(head))
	f.Add([]byte(head + "[[parameters]]\nname = \"n\"\ntype = \"array\"\nitems.type = \"string\"\ndefault = [\"a\"]\n"))
	f.Add([]byte("a.b.c = 1\n[a.b]\n[[a.b.c]]\n"))
	f.Add([]byte(head + "[env]\nA = \"{{{out}}}\"\n[resources]\nmemory = \"{settings.x}GiB\"\n"))
	for _, name := range []string{"fold-compare", "word-count"} {
		text, err := os.ReadFile("testdata/algorithms/" + name + ".toml")
		must.OK(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		lines := strings.Count(string(text), "\n") + 1
		a, mistakes := Parse("f.toml", text)
		if (a == nil) == (len(mistakes) == 0) {
			t.Fatalf("algorithm %v with mistakes %v", a, mistakes)
		}
		for _, m := range mistakes {
			if m.Line < 1 || m.Line > lines || m.Msg == "" {
				t.Errorf("mistake %v in a text of %d lines", m, lines)
			}
		}
		if a == nil {
			return
		}
		compileSettingsSchema(t, a)
		if again, _ := Parse("f.toml", a.Source); again == nil || again.Digest != a.Digest {
			t.Error("the source of an algorithm gives another one")
		}
	})
}
