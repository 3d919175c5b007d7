package algorithm

import (
	"fmt"
	"strings"
	"testing"

	"molrun/app/algorithm/placement"
	"molrun/app/test/must"
)

const rulesFile = fileHead + `
command = ["run", "-n", "{derived.nsteps}", "{derived.label}", { if = "settings.box", args = ["--volume", "{derived.volume}"] }]

[[parameters]]
name = "ns"
type = "number"
minimum = 0
default = 0.5
[[parameters]]
name = "from"
type = "integer"
default = 1
[[parameters]]
name = "to"
type = "integer"
default = 10
[[parameters]]
name = "mode"
type = "string"
default = "nvt"
[[parameters]]
name = "box"
type = "array"
items = { type = "number" }
[[parameters]]
name = "smiles"
type = "string"
[[parameters]]
name = "ligand"
file = [".sdf"]

[derived]
nsteps = "round(settings.ns * 500000)"
half = "derived.nsteps / 2"
label = 'settings.mode + "-" + string(settings.to - settings.from)'
volume = "settings.box[0] * settings.box[1] * settings.box[2]"
inverse = "1 / settings.ns"

[[one_of]]
parameters = ["smiles", "ligand"]

[[rules]]
that = "settings.from < settings.to"
message = "must be below to"
[[rules]]
that = "settings.to <= settings.from + 100"
message = "is more than 100 behind from"
[[rules]]
that = "all(settings.box, # > 1)"
message = "must have sides above 1 nm"
[[rules]]
that = 'settings.mode != "npt" or derived.nsteps >= 1000'
message = "is too short for a pressure"
at = "ns"
`

func TestRulesBetweenSettings(t *testing.T) {
	a := parseOK(t, rulesFile)
	tests := []struct{ settings, want string }{
		{`{"smiles":"CCO"}`, ""},
		{`{"ligand":"inputs/a.sdf"}`, ""},
		{`{}`, "[smiles] is missing: give one of smiles, ligand"},
		{`{"smiles":"CCO","ligand":"inputs/a.sdf"}`, "[ligand] is given together with smiles: give only one of smiles, ligand"},
		{`{"smiles":"CCO","from":10}`, "[from] must be below to"},
		{`{"smiles":"CCO","to":200}`, "[to] is more than 100 behind from"},
		{`{"smiles":"CCO","box":[3,4,5]}`, ""},
		{`{"smiles":"CCO","box":[3,1,5]}`, "[box] must have sides above 1 nm"},
		{`{"smiles":"CCO","box":[3]}`, "[box] conflicts with the other settings: volume (settings.box[0] * settings.box[1] * settings.box[2]) can't be computed"},
		{`{"smiles":"CCO","mode":"npt","ns":0.001}`, "[ns] is too short for a pressure"},
		{`{"smiles":"CCO","ns":0}`, "[ns] conflicts with the other settings: inverse (1 / settings.ns) can't be computed: it is not a finite number"},
		{`{"from":"x"}`, "[from] must be"},
		{`{"from":10,"ns":0}`, "[ns] conflicts with the other settings: inverse (1 / settings.ns) can't be computed: it is not a finite number|[smiles] is missing: give one of smiles, ligand|[from] must be below to"},
	}
	for _, tt := range tests {
		_, faults := a.CheckSettings(parseJSON(t, tt.settings))
		var got []string
		for _, f := range faults {
			got = append(got, fmt.Sprint(f.Loc, " ", f.Msg))
		}
		if all := strings.Join(got, "|"); all != tt.want && (tt.want == "" || !strings.HasPrefix(all, tt.want)) {
			t.Errorf("%s: %q, want %q", tt.settings, all, tt.want)
		}
	}
}

// Advice never rejects settings, and gives no warning if the file metadata is unknown.
func TestAdvice(t *testing.T) {
	a := parseOK(t, rulesFile+`
[[advice]]
that = "settings.ns >= 0.1"
message = "is short"
[[advice]]
that = "len(settings.box) > 3 or settings.ns > settings.box[4]"
message = "is less than the box"
at = "ns"
[[advice]]
that = "facts.ligand.bytes < 1000"
message = "is large"
`)
	for settings, want := range map[string]string{
		`{"smiles":"C"}`:                        "",
		`{"smiles":"C","ns":0.05}`:              "[ns] is short advice",
		`{"smiles":"C","box":[2,3,4]}`:          "", // can't be computed
		`{"ligand":"inputs/a.sdf"}`:             "[ligand] is large advice",
		`{"ligand":"inputs/a.sdf","ns":0.09}`:   "[ns] is short advice|[ligand] is large advice",
		`{"smiles":"C","box":[2,3,4,5,6]}`:      "",
		`{"ligand":"inputs/a.sdf","from":"x"} `: "fault",
	} {
		given, faults := a.CheckSettings(parseJSON(t, settings))
		if len(faults) > 0 {
			if want != "fault" {
				t.Errorf("%s: %v", settings, faults)
			}
			continue
		}
		facts := Facts{}
		if strings.Contains(settings, "ligand") {
			facts.AddFile("ligand", 2000, false)
		}
		var got []string
		for _, f := range a.SettingsWarnings(Normalize(given), facts) {
			got = append(got, fmt.Sprint(f.Loc, " ", f.Msg, " ", f.Type))
		}
		must.Equal(t, settings, strings.Join(got, "|"), want)
	}
}

func TestDerivedValuesAreArguments(t *testing.T) {
	a := parseOK(t, rulesFile)
	for settings, want := range map[string]string{
		`{"smiles":"C"}`:                         "run -n 250000 nvt-9",
		`{"smiles":"C","ns":1e6}`:                "run -n 500000000000 nvt-9",
		`{"smiles":"C","box":[2,2.5,3],"to":3}`:  "run -n 250000 nvt-2 --volume 15",
		`{"smiles":"C","ns":0.3,"mode":"a b\n"}`: "run -n 150000 a b\n-9",
	} {
		must.Equal(t, settings, strings.Join(expandWith(t, a, settings, placement.Resources{}, nil).Steps[0].Argv, " "), want)
	}
}

// The text follows three lines, so it begins at line 4.
func TestMistakesInRules(t *testing.T) {
	const command = "command = [\"a\"]\n"
	tests := []struct {
		name, text string
		want       []string
	}{
		{"unknown setting", command + "[derived]\nx = \"settings.opd + 1\"", []string{"6: x = \"settings.opd + 1\": no parameter is named \"opd\"; did you mean \"opt\"? (at character 10)"}},
		{"later value", command + "[derived]\nx = \"derived.y\"\ny = \"1\"", []string{"6: unknown field y"}},
		{"text and number", command + "[derived]\nx = \"settings.method * 2\"", []string{"6: invalid operation"}},
		{"no expression", command + "[derived]\nx = \"1 +\"", []string{"6: x = \"1 +\": unexpected token"}},
		{"number for an expression", command + "[derived]\nx = 1", []string{"6: x must be a text"}},
		{"rule that is a number", command + "[[rules]]\nthat = \"1 + 1\"\nmessage = \"m\"", []string{"6: expected bool"}},
		{"rule at nothing", command + "[[rules]]\nthat = \"true\"\nmessage = \"m\"\nat = \"optt\"", []string{`8: no parameter is named "optt"; did you mean "opt"?`}},
		{"choice of one", command + "[[one_of]]\nparameters = [\"opt\"]", []string{"5: [[one_of]] needs a list of mutually exclusive parameters"}},
		{"choice of what is always there", command + "[[one_of]]\nparameters = [\"opt\", \"method\"]", []string{`6: the parameter "method" always has a value`}},
		{"derived of what may not be there", "command = [\"a\", \"{derived.x}\"]\n[derived]\nx = \"settings.rounds * 2\"", []string{`4: the derived value "x" is undefined without the setting "rounds"`}},
		{"unknown derived value", "command = [\"a\", \"{derived.z}\"]", []string{`4: no derived value is named "z"`}},
		{"derived program", "command = [\"{derived.x}\"]\n[derived]\nx = \"'a'\"", []string{"4: a setting cannot choose the program to run"}},
		{"the clock", command + "[derived]\nx = \"now()\"", []string{"6: unknown name now"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkMistakes(t, fileHead+tt.text+fileParameters, tt.want...) })
	}
}
