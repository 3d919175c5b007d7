package expression

import (
	"fmt"
	"strings"
	"testing"

	"molrun/app/test/must"
)

var names = Names{
	Settings: map[string]Kind{"steps": Number, "method": Text, "on": Flag, "list": List, "opt": Any, "my-name": Number, "file": Text},
	Derived:  map[string]Kind{"double": Number},
	Facts:    map[string][]string{"file": {"bytes"}},
	Files:    map[string]Kind{"file": Text},
}

func TestConditionsHold(t *testing.T) {
	values := Values{
		Settings: map[string]any{"steps": 0.0, "method": "", "on": false, "list": []any{}, "my-name": 3.0},
		Files:    map[string]any{"file": "/in/file.pdb.gz"}, Facts: map[string]map[string]any{"file": {"bytes": 5.0}}, GPUs: 1,
	}
	for text, want := range map[string]bool{
		"settings.steps": true, "settings.method": true, "settings.on": false, "not settings.on": true,
		"settings.list": false, "settings.opt": false, "settings.opt == nil": false, "(settings.opt ?? 7) == 7": true,
		"derived.double > 1": false, "settings['my-name'] in [1, 3]": true,
		"files.file": true, "files.file endsWith '.gz'": true, "files.file endsWith '.cif'": false,
		"facts.bytes > 4": true, "gpus > 0": true, "gpus > 1": false,
	} {
		e, err := ParseCondition(text, names)
		if err != nil || e.Holds(values) != want {
			t.Errorf("%s: error %v, or it does not come out %v", text, err, want)
		}
	}
}

func TestLiteralsAreThoseThatSettingsAreComparedWith(t *testing.T) {
	e, err := ParseCondition("settings.method == 'a' and settings.steps in [1, 2.5] and files.file endsWith '.x' and settings.on != true and settings.opt == settings.steps", names)
	must.OK(t, err)
	want := []Literal{
		{"settings", "method", "a"}, {"settings", "steps", 1}, {"settings", "steps", 2.5}, {"files", "file", ".x"}, {"settings", "on", true},
	}
	must.Equal(t, "literals", e.Literals, want)
}

func TestMistakesOfConditions(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "unexpected token EOF",
		"settings.stesp > 1":      `no parameter is named "stesp"; did you mean "steps"? (at character 10)`,
		"files.method":            `the parameter "method" is not a file: write settings.method (at character 7)`,
		"files.fiel":              `no parameter is named "fiel"; did you mean "file"?`,
		"1 + double":              "unknown name double; did you mean derived.double? (at character 5)",
		"sqrt(2)":                 "unknown name sqrt; write settings.NAME for a setting",
		"gpus":                    "a number is always true: compare it with another",
		strings.Repeat("(", 9999): "(at character",
	} {
		must.Fail(t, fmt.Sprintf("%.20q", text), must.Error2(ParseCondition(text, names)), want)
	}
}

// A short expression must not exhaust memory.
func TestExpressionsAreBounded(t *testing.T) {
	for _, text := range []string{"repeat('x', 9)", "'xxx' | repeat(9)", "toJSON(settings.list)"} {
		must.Fail(t, text, must.Error2(Parse(text, names)), "unknown name")
	}
	doubled := func(first, last, step string) string {
		text := "let a0 = " + first + "; "
		for i := range 30 {
			text += fmt.Sprintf("let a%d = "+step+"; ", i+1, i)
		}
		return text + fmt.Sprintf(last, 30)
	}
	values := Values{Settings: map[string]any{"opt": strings.Repeat("x", 1000), "method": strings.Repeat("x", 1000)}}
	for _, text := range []string{
		doubled("settings.method", "len(a%d)", "a%[2]d + a%[2]d"),
		doubled("settings.opt", "len(a%d)", "a%[2]d + a%[2]d"),
		doubled("settings.method", "len(a%d)", "join([a%[2]d, a%[2]d])"),
		doubled("[1]", "len(string(a%d))", "[a%[2]d, a%[2]d]"),
		doubled("settings.method", "len(a%d)", "replace(a%[2]d, '', a%[2]d)"),
		"len(reduce(1..30, #acc + #acc, settings.method))",
		"len(join(1..100000 | map('x'), settings.method))",
		"len(map(1..100000, settings.opt + settings.opt))",
		"len(map(1..100000, upper(settings.method)))",
		"len(map(1..100000, split(settings.method, '')))",
		"len(1..100000000)",
	} {
		e, err := Parse(text, names)
		must.OK(t, err)
		if got, err := e.Value(values); err == nil || !strings.Contains(err.Error(), "memory budget exceeded") && !strings.Contains(err.Error(), errMemory.Error()) {
			t.Errorf("%.60s: %v, error %v", text, got, err)
		}
	}
}

func TestTextsAndNumbersAreAdded(t *testing.T) {
	values := Values{Settings: map[string]any{"steps": 2.0, "method": "a", "opt": "b", "list": []any{"c", 3.0}}}
	for text, want := range map[string]any{
		"settings.steps + 1": 3.0, "settings.method + settings.opt + '!'": "ab!", "settings.opt + settings.method": "ba",
		"settings.list[1] + settings.steps": 5.0, "settings.list[0] + 'd'": "cd", "1 + 2": 3.0, "'a' + 'b'": "ab",
		"join(['x', settings.method], '-')": "x-a", "len(split('a b', ' '))": 2.0, "replace(settings.method, 'a', 'xy')": "xy", "settings.opt | split('', 1) | len()": 1.0,
		"join(map(split('a b', ' '), # + '1'), join(['/'], join(['-'])))": "a1/b1", "string(settings.steps)": "2", "upper(settings.opt)": "B",
	} {
		e, err := Parse(text, names)
		must.OK(t, err)
		got, err := e.Value(values)
		must.OK(t, err)
		must.Equal(t, text, got, want)
	}
	for text, want := range map[string]string{
		"settings.method + 1": "mismatched types", "'a' + settings.steps": "mismatched types", "upper(1)": "cannot use",
		"join(settings.method)": "cannot use", "split('a')": "not enough arguments", "replace('a', 'b', 1)": "cannot use",
	} {
		must.Fail(t, text, must.Error2(Parse(text, names)), want)
	}
}

// FuzzParse checks that parsing and evaluating arbitrary text never crashes.
func FuzzParse(f *testing.F) {
	f.Add("(settings.steps ?? 5) ^ 2 / len(settings.list)")
	f.Fuzz(func(t *testing.T, text string) {
		if e, err := ParseCondition(text, names); err == nil {
			e.Holds(Values{})
		}
	})
}
