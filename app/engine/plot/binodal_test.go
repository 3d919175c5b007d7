package plot

import (
	"math"
	"slices"
	"strings"
	"testing"

	"molrun/app/test/must"
)

var unknownBar = Bar{math.NaN(), math.NaN()}

// drawn returns points of all kinds: with both phases, with a bound, unused, with one
// phase, and undecided.
func drawn() *Binodal {
	return &Binodal{
		Title: "Binodal", Axis: "temperature / K",
		Points: []Coexistence{
			{283, true, Bar{600, 3}, unknownBar, 8, math.NaN(), false, unknownBar, -4.3},
			{293, true, Bar{560, 4}, Bar{5, 1}, math.NaN(), math.NaN(), false, Bar{-4.7, 0.1}, math.NaN()},
			{303, false, Bar{520, 5}, Bar{9, math.NaN()}, math.NaN(), math.NaN(), false, Bar{-4, math.NaN()}, math.NaN()},
			{353, false, unknownBar, unknownBar, math.NaN(), 106, false, unknownBar, math.NaN()},
			{343, false, unknownBar, unknownBar, math.NaN(), 106, true, unknownBar, math.NaN()},
		},
		Law:      []LawPoint{{283, 605, -4}, {323, 450, 20}, {345, 170, 170}},
		Critical: &Critical{Bar{345, 3}, Bar{170, 9}},
	}
}

func TestBinodalSVG(t *testing.T) {
	content, err := drawn().SVG()
	must.OK(t, err)
	texts, elements := readSVG(t, content)
	for _, want := range []string{
		"Binodal", "temperature / K", "concentration / mg/mL", "transfer / kT", "dense phase", "dilute phase",
		"dilute phase, below a bound", "not used", "one phase", "phases unknown", "law near Tc", "mean of both phases", "critical point",
	} {
		if n := len(slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return s != want })); n != 1 {
			t.Errorf("%q is there %d times among %q", want, n, texts)
		}
	}
	if elements["svg"] != 1 || strings.Contains(string(content), "NaN") {
		t.Errorf("the picture has elements %v", elements)
	}
}

// A plot is drawn even if many values are unknown.
func TestBinodalOfLittle(t *testing.T) {
	full := drawn()
	for name, f := range map[string]*Binodal{
		"one point":    {Points: full.Points[1:2]},
		"one bound":    {Points: full.Points[:1]},
		"one phase":    {Points: full.Points[3:4]},
		"nothing seen": {Points: []Coexistence{{293, false, unknownBar, unknownBar, math.NaN(), math.NaN(), false, unknownBar, math.NaN()}}},
		"one place":    {Points: []Coexistence{full.Points[1], full.Points[1]}},
		"no salt":      {Points: []Coexistence{{0, true, Bar{1, 1}, Bar{0, 0}, math.NaN(), math.NaN(), false, unknownBar, math.NaN()}}},
	} {
		content, err := f.SVG()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if texts, _ := readSVG(t, content); strings.Contains(string(content), "NaN") || !slices.Contains(texts, "concentration / mg/mL") {
			t.Errorf("%s: %.400s", name, content)
		}
	}
}

func TestBinodalShowsAllOfIt(t *testing.T) {
	f := drawn()
	if low, high := f.extent(); low >= 283 || high <= 353 || low < 270 || high > 365 {
		t.Errorf("from %g to %g", low, high)
	}
	f.Points = f.Points[:3]
	if _, high := f.extent(); high <= 348 {
		t.Errorf("up to %g, and the critical point is at 345±3", high)
	}
	f.Critical = nil
	if low, high := f.extent(); high-303 < (303-low)/4 {
		t.Errorf("from %g to %g, without space for the legend", low, high)
	}
}
