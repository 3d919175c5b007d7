package algorithm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"molrun/app/algorithm/placement"
	"molrun/app/task/protocol"
)

const progressParameters = `
[[parameters]]
name = "steps"
type = "integer"
default = 200
[[parameters]]
name = "relax"
type = "boolean"
default = true
[[parameters]]
name = "opt"
type = "integer"
[[parameters]]
name = "label"
type = "string"
default = "x"
[derived]
frames = "settings.steps / 10"
`

const progressSteps = fileHead + `
[[steps]]
name = "prepare"
command = ["prep"]
[[steps]]
name = "relax"
if = "settings.relax"
command = ["relax"]
progress = { count = '\*', of = 51, share = "settings.steps / 2000" }
[[steps]]
name = "run"
command = ["run"]
progress = { pattern = 'step (\d+)', of = "{settings.steps}", share = 0.8, file = "{out}/run.log" }
[[steps]]
name = "analyse"
command = ["analyse"]
progress = { pattern = 'frame (\d+)', of = "{derived.frames}" }
` + progressParameters

func TestProgressOfSteps(t *testing.T) {
	a := parseOK(t, progressSteps)
	for settings, want := range map[string][]protocol.Step{
		`{}`: {
			{Span: &protocol.Span{Share: 0.05, Guessed: true}},
			{Span: &protocol.Span{From: 0.05, Share: 0.1}, Gauge: &protocol.ProgressParser{Pattern: `\*`, Count: true, Of: 51}},
			{Span: &protocol.Span{From: 0.15, Share: 0.8}, Gauge: &protocol.ProgressParser{Pattern: `step (\d+)`, Of: 200, File: "/w/out/run.log"}},
			{Span: &protocol.Span{From: 0.95, Share: 0.05, Guessed: true}, Gauge: &protocol.ProgressParser{Pattern: `frame (\d+)`, Of: 20}},
		},
		`{"relax":false,"steps":0}`: { // a skipped step takes no time, and 0 steps yield no progress
			{Span: &protocol.Span{Share: 0.1, Guessed: true}},
			{Span: &protocol.Span{From: 0.1, Share: 0.8}},
			{Span: &protocol.Span{From: 0.9, Share: 0.1, Guessed: true}},
		},
	} {
		run := expandWith(t, a, settings, placement.Resources{CPUs: 1}, nil)
		ignore := cmpopts.IgnoreFields(protocol.Step{}, "Name", "Argv")
		if diff := cmp.Diff(want, run.Steps, ignore, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", settings, diff)
		}
	}
}

func TestSpansOfSteps(t *testing.T) {
	one := parseOK(t, fileHead+"command = [\"run\"]\nprogress = { pattern = '(\\d+)/(\\d+)' }\n")
	whole := parseOK(t, fileHead+"[[steps]]\ncommand = [\"a\"]\nprogress = { share = 0.2 }\n[[steps]]\ncommand = [\"b\"]\nprogress = { share = 0.3 }\n")
	for _, c := range []struct {
		a    *File
		want []*protocol.Span
	}{
		{one, []*protocol.Span{{Share: 1}}},
		{whole, []*protocol.Span{{Share: 0.4}, {From: 0.4, Share: 0.6}}},
	} {
		var got []*protocol.Span
		for _, s := range expandWith(t, c.a, "{}", placement.Resources{CPUs: 1}, nil).Steps {
			got = append(got, s.Span)
		}
		if diff := cmp.Diff(c.want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("spans (-want +got)\n%s", diff)
		}
	}
}

func TestMistakesInProgress(t *testing.T) {
	for written, want := range map[string]string{
		`progress = {}`:  "progress needs a pattern",
		`progress = "x"`: "progress must be",
		`progress = { pattern = 'a(\d)', count = 'b', of = 2 }`:    "either a pattern",
		`progress = { pattern = 'a(\d', of = 2 }`:                  "pattern is not a valid regular expression",
		`progress = { pattern = 'a', of = 2 }`:                     "needs a group",
		`progress = { pattern = 'a*', of = 2 }`:                    "matches the empty string",
		`progress = { count = 'a' }`:                               "count needs of",
		`progress = { count = 'a', of = 0 }`:                       "of must be above 0",
		`progress = { count = 'a', of = "5" }`:                     `of must be a number, "{settings.NAME}"`,
		`progress = { count = 'a', of = "{settings.label}" }`:      "is not a number",
		`progress = { count = 'a', of = "{settings.opt}" }`:        "can be unset",
		`progress = { count = 'a', of = "{settings.no}" }`:         `"no"`,
		`progress = { count = 'a', of = "{derived.no}" }`:          `no derived value is named "no"`,
		`progress = { share = "settings.label" }`:                  "is not a number",
		`progress = { share = "settings.opt / 2" }`:                "can be unset",
		`progress = { share = "0.5 +" }`:                           "neither an amount nor an expression",
		`progress = { share = 1.5 }`:                               "share must be above 0",
		`progress = { share = 0.5, of = 2 }`:                       "of requires a pattern",
		`progress = { share = 0.5, file = "{out}/x" }`:             "file requires a pattern",
		`progress = { count = 'a', of = 2, file = "/etc/passwd" }`: "file must be a file below {out} or {work}",
		`progress = { count = 'a', of = 2, shares = 1 }`:           `"shares"`,
	} {
		_, mistakes := Parse("a.toml", []byte(fileHead+"command = [\"run\"]\n"+written+"\n"+progressParameters))
		if len(mistakes) == 0 || mistakes[0].Line != 5 || !strings.Contains(mistakes[0].Msg, want) {
			t.Errorf("%s: %v, want line 5 with %q", written, mistakes, want)
		}
	}
	_, mistakes := Parse("a.toml", []byte(fileHead+"[[steps]]\ncommand = [\"a\"]\nprogress = { share = 0.7 }\n[[steps]]\ncommand = [\"b\"]\nprogress = { share = 0.7 }\n"))
	if len(mistakes) != 1 || !strings.Contains(mistakes[0].Msg, "add up to 1.4") {
		t.Errorf("two large shares: %v", mistakes)
	}
}
