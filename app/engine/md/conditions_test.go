package md

import (
	"math"
	"strings"
	"testing"

	"molrun/app/test/enginetest"
)

// subject is a chain under given conditions.
type subject struct {
	what       string
	sequence   string
	conditions Conditions
	rg         float64 // nm, from a million steps with another implementation; 0 if unknown
}

// Conditions and charge patterning change the size of a chain in the direction known from
// experiment. Short chains show this quickly; the long tests compare proteins with sizes
// from another implementation.
func TestSizeFollowsConditions(t *testing.T) {
	t.Parallel()
	type comparison struct {
		name      string
		steps     int
		tolerance float64 // nm, error of the other implementation's run
		chains    []subject
	}
	steps := enginetest.Length(3000, 100_000, 1_000_000)
	negative, histidines := strings.Repeat("EG", 15), strings.Repeat("HG", 12)
	tests := []comparison{
		{"salt screens like charges", steps, 0, []subject{
			{"0.01 mol/L", negative, in(298, 7, 0.01), 0},
			{"1 mol/L", negative, in(298, 7, 1), 0},
		}},
		{"blocks of charges attract each other", steps, 0, []subject{
			{"alternating", strings.Repeat("EK", 16), in(298, 7, 0.05), 0},
			{"in two blocks", strings.Repeat("E", 16) + strings.Repeat("K", 16), in(298, 7, 0.05), 0},
		}},
		{"acid charges histidine", steps, 0, []subject{
			{"pH 4", histidines, in(298, 4, 0.02), 0},
			{"pH 8", histidines, in(298, 8, 0.02), 0},
		}},
	}
	if enginetest.Physics() {
		ptma, hst5 := enginetest.ReferenceProtein(t, "PTMA").Sequence, enginetest.ReferenceProtein(t, "Hst5").Sequence
		tests = append(tests, []comparison{
			{"PTMA in salt", 2_000_000, 0.25, []subject{
				{"0.01 mol/L", ptma, in(288, 7.4, 0.01), 5.2},
				{"0.16 mol/L", ptma, in(288, 7.4, 0.16), 4.2},
				{"1 mol/L", ptma, in(288, 7.4, 1), 3.5},
			}},
			{"order of charges", 2_000_000, 0.1, []subject{
				{"(EK)25", strings.Repeat("EK", 25), in(298, 7, 0.15), 2.35},
				{"E25K25", strings.Repeat("E", 25) + strings.Repeat("K", 25), in(298, 7, 0.15), 1.43},
			}},
			{"Hst5 in acid", 4_000_000, 0.04, []subject{
				{"pH 4", hst5, in(293, 4, 0.15), 1.48},
				{"pH 8", hst5, in(293, 8, 0.15), 1.31},
			}},
		}...)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			checkShrinks(t, tt.chains, tt.steps, tt.tolerance)
		})
	}
}

// checkShrinks checks that each chain is clearly smaller than the previous one, and has
// the known size within the tolerance and its own error.
func checkShrinks(t *testing.T, chains []subject, steps int, tolerance float64) {
	t.Helper()
	var before *Estimate
	for _, c := range chains {
		rg := meanRg(t, c, steps)
		t.Logf("%s: Rg %.3f ± %.3f nm", c.what, rg.Mean, rg.SE)
		if c.rg > 0 {
			enginetest.Near(t, c.what, rg.Mean, c.rg, tolerance+2*rg.SE)
		}
		if before != nil && !enginetest.RaceDetector && before.Mean-rg.Mean < 3*math.Hypot(before.SE, rg.SE) {
			t.Errorf("%s: %.3f ± %.3f nm is not clearly less than %.3f ± %.3f nm",
				c.what, rg.Mean, rg.SE, before.Mean, before.SE)
		}
		before = &rg
	}
}

// meanRg returns the mean Rg of a run without its first tenth.
func meanRg(t *testing.T, c subject, steps int) Estimate {
	t.Helper()
	d := started(t, NewModel(c.sequence, c.conditions))
	advance(t, d, steps/10)
	samples := steps * 9 / 10 / 100
	rg := NewSeries(int64(samples))
	for range samples {
		advance(t, d, 100)
		rg.Add(d.model.GyrationRadius(d.x))
	}
	return Pool([]Series{rg})
}
