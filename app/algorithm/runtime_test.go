package algorithm

import (
	"strings"
	"testing"
	"time"
)

const runtimeFile = fileHead + `max_runtime = { seconds = "600 + 2.5 * facts.residues * settings.ns", most = "2h" }
command = ["run", { if = "files.structure", args = ["{files.structure}"] }]
[[parameters]]
name = "structure"
file = [".pdb"]
content = "protein-structure"
[[parameters]]
name = "ns"
type = "number"
default = 1
`

func TestComputedRuntime(t *testing.T) {
	a := parseOK(t, runtimeFile)
	known := func(residues float64) Facts { return Facts{"structure": {"residues": residues}} }
	for _, c := range []struct {
		settings string
		facts    Facts
		want     int64
	}{
		{`{}`, Facts{}, 600},                                                    // no file
		{`{"structure":"a.pdb"}`, known(100), 850},                              //
		{`{"structure":"a.pdb","ns":0.01}`, known(101), 603},                    // rounded up
		{`{"structure":"a.pdb","ns":100}`, known(1000), 7200},                   // upper limit
		{`{"structure":"a.pdb","ns":-100}`, known(1000), 1},                     // lower limit
		{`{"structure":"job:a/b.pdb"}`, Facts{"structure": {"bytes": 9}}, 7200}, // not known yet
	} {
		settings, _ := a.CheckSettings(parseJSON(t, c.settings))
		seconds, faults := a.Runtime(settings, c.facts)
		if seconds != c.want || len(faults) > 0 {
			t.Errorf("%s: %d s, %v; want %d", c.settings, seconds, faults, c.want)
		}
	}
	if a.MaxRuntime != 2*time.Hour || !a.UsesFacts() {
		t.Errorf("at most %v, uses facts %v", a.MaxRuntime, a.UsesFacts())
	}
	if seconds, _ := parseOK(t, fileHead+"command = [\"run\"]\nmax_runtime = \"3h\"\n").Runtime(parseJSON(t, "{}"), nil); seconds != 10800 {
		t.Errorf("a fixed limit: %d s", seconds)
	}
}

func TestRuntimeThatCannotBeComputed(t *testing.T) {
	a := parseOK(t, strings.Replace(runtimeFile, "600 + ", "600 / (settings.ns - 2) + ", 1))
	_, faults := a.Runtime(parseJSON(t, `{"ns":2}`), nil)
	if len(faults) != 1 || faults[0].Loc[0] != "ns" || !strings.Contains(faults[0].Msg, "the run time limit of the job") {
		t.Errorf("faults %v", faults)
	}
}

func TestMistakesInMaxRuntime(t *testing.T) {
	for written, want := range map[string]string{
		`{ seconds = "60" }`:                            "is missing in max_runtime",
		`{ most = "1h" }`:                               "is missing in max_runtime",
		`{ seconds = 60, most = "1h" }`:                 "seconds must be a text",
		`{ seconds = "60 +", most = "1h" }`:             "neither an amount nor an expression",
		`{ seconds = "settings.nothing", most = "1h" }`: "nothing",
		`{ seconds = "settings.opt", most = "1h" }`:     "can be unset",
		`{ seconds = "60", most = "soon" }`:             "most:",
		`{ seconds = "60", most = "0s" }`:               "most must be between",
		`{ seconds = "60", most = "1h", least = "1s" }`: `"least"`,
		`"600 + 2 * facts.residues"`:                    "or compute it",
		`60`:                                            "must be a text",
	} {
		text := strings.Replace(runtimeFile, `{ seconds = "600 + 2.5 * facts.residues * settings.ns", most = "2h" }`, written, 1) + "[[parameters]]\nname = \"opt\"\ntype = \"number\"\n"
		_, mistakes := Parse("a.toml", []byte(text))
		if len(mistakes) == 0 || mistakes[0].Line != 4 || !strings.Contains(mistakes[0].Msg, want) {
			t.Errorf("%s: %v, want line 4 with %q", written, mistakes, want)
		}
	}
}
