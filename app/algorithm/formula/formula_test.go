package formula

import (
	"strings"
	"testing"

	"molrun/app/base/strictjson"
	"molrun/app/test/must"
)

func jobOf(t *testing.T, settings string, files map[string]int64) *Job {
	t.Helper()
	v, err := strictjson.Parse([]byte(settings))
	must.OK(t, err)
	return &Job{Settings: v, Files: files}
}

func TestValue(t *testing.T) {
	j := jobOf(t, `{"steps":2000,"half":0.5,"on":true,"off":false,"text":"Bär","list":["AB","CDE"],"none":null,"my-name":7}`, map[string]int64{"fasta": 120})
	for text, want := range map[string]float64{
		"1 + 2 * 3":                            7,
		"(1 + 2) * 3":                          9,
		"8 / 4 / 2":                            1,
		"10 - 3 - 2":                           5,
		"2 ^ 3 ^ 2":                            512,
		"2 * 3 ^ 2":                            18,
		"1.5e3":                                1500,
		"settings.steps * settings.half":       1000,
		"settings.my-name - 2":                 5,
		"settings.on + settings.off":           1,
		"length(settings.text)":                3,
		"length(settings.list)":                5,
		"count(settings.list)":                 2,
		"count(settings.text)":                 1,
		"count(settings.none)":                 0,
		"length(settings.absent)":              0,
		"settings.absent":                      0,
		"settings.text":                        0,
		"files.fasta":                          120,
		"files.absent":                         0,
		"or(settings.absent, 0, 6)":            6,
		"or(settings.steps, 6)":                2000,
		"max(1, 3, 2)":                         3,
		"min(3, 1, 2)":                         1,
		"1 / settings.absent":                  0,
		"0 / 0":                                0,
		"1 - 5":                                0,
		"10 ^ 400":                             0,
		"max(0, length(settings.list)-0) * 2 ": 10,
	} {
		f, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := f.Value(j); got != want {
			t.Errorf("%s = %v, want %v", text, got, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "ends too early",
		"1 +":                      "ends too early",
		"(1":                       "ends too early",
		"max(1":                    "ends too early",
		"1 2":                      `"2" is not expected`,
		"(1 2)":                    `"2" is not expected`,
		"1 + )":                    `")" is no number`,
		"steps":                    `"steps" is no number`,
		"out.x":                    `"out.x" is no number`,
		"sqrt(2)":                  `"sqrt" is no number`,
		"max":                      "needs its arguments",
		"length(2)":                "length takes one setting",
		"count(files.x)":           "count takes one setting",
		"length(settings.a":        "ends too early",
		"length(settings.a, 1)":    `"," is not expected`,
		"1 $ 2":                    `"$ 2"`,
		strings.Repeat("(", 1_001): "it may have 1000",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestUses(t *testing.T) {
	f, err := Parse("settings.a + files.b * length(settings.c)")
	must.OK(t, err)
	want := []Use{{"settings", "a", ""}, {"files", "b", ""}, {"settings", "c", "length"}}
	if len(f.Uses) != 3 || f.Uses[0] != want[0] || f.Uses[1] != want[1] || f.Uses[2] != want[2] {
		t.Errorf("uses %v, want %v", f.Uses, want)
	}
}

// FuzzParse expects an error, and nothing worse, from any text.
func FuzzParse(f *testing.F) {
	f.Add("or(settings.steps, 5) ^ 2 / count(settings.x)")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := Parse(text)
		if err == nil {
			parsed.Value(&Job{Settings: &strictjson.Value{Kind: strictjson.Object}})
		}
	})
}
