package cgidp

import (
	"math"
	"strings"
	"testing"
)

// surroundings is a chain in a medium.
type surroundings struct {
	what       string
	sequence   string
	conditions conditions
	rg         float64 // nm, of a million steps with another implementation; 0 if not known
}

func in(temperature, pH, ionicStrength float64) conditions {
	return conditions{
		temperature: temperature, pH: pH, ionicStrength: ionicStrength,
		friction: limitFriction.preset, chargedTermini: true,
	}
}

// What surrounds a chain, and how its charges are ordered, changes its size in
// the direction known from experiment. Small chains show that in no time.
func TestSizeFollowsConditions(t *testing.T) {
	t.Parallel()
	steps := length(3000, 100_000, 1_000_000)
	negative, histidines := strings.Repeat("EG", 15), strings.Repeat("HG", 12)
	for name, chains := range map[string][]surroundings{
		"salt screens like charges": {
			{"0.01 mol/L", negative, in(298, 7, 0.01), 0},
			{"1 mol/L", negative, in(298, 7, 1), 0},
		},
		"blocks of charges attract each other": {
			{"alternating", strings.Repeat("EK", 16), in(298, 7, 0.05), 0},
			{"in two blocks", strings.Repeat("E", 16) + strings.Repeat("K", 16), in(298, 7, 0.05), 0},
		},
		"acid charges histidine": {
			{"pH 4", histidines, in(298, 4, 0.02), 0},
			{"pH 8", histidines, in(298, 8, 0.02), 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkShrinks(t, chains, steps, 0)
		})
	}
}

// The same with proteins, against the sizes that another implementation gave.
func TestSizesUnderConditions(t *testing.T) {
	if !physics() {
		t.Skip("set CGIDP_PHYSICS to run")
	}
	t.Parallel()
	ptma, hst5 := referenceProtein(t, "PTMA").sequence, referenceProtein(t, "Hst5").sequence
	tests := []struct {
		name      string
		steps     int
		tolerance float64 // nm: the error of the other implementation's run
		chains    []surroundings
	}{
		{"PTMA in salt", 2_000_000, 0.25, []surroundings{
			{"0.01 mol/L", ptma, in(288, 7.4, 0.01), 5.2},
			{"0.16 mol/L", ptma, in(288, 7.4, 0.16), 4.2},
			{"1 mol/L", ptma, in(288, 7.4, 1), 3.5},
		}},
		{"order of charges", 2_000_000, 0.1, []surroundings{
			{"(EK)25", strings.Repeat("EK", 25), in(298, 7, 0.15), 2.35},
			{"E25K25", strings.Repeat("E", 25) + strings.Repeat("K", 25), in(298, 7, 0.15), 1.43},
		}},
		{"Hst5 in acid", 4_000_000, 0.04, []surroundings{
			{"pH 4", hst5, in(293, 4, 0.15), 1.48},
			{"pH 8", hst5, in(293, 8, 0.15), 1.31},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			checkShrinks(t, tt.chains, tt.steps, tt.tolerance)
		})
	}
}

// checkShrinks wants each chain clearly smaller than the one before, and of the
// size known, within a tolerance and its own error.
func checkShrinks(t *testing.T, chains []surroundings, steps int, tolerance float64) {
	t.Helper()
	var before *estimate
	for _, c := range chains {
		rg := meanRg(t, c, steps)
		t.Logf("%s: Rg %.3f ± %.3f nm", c.what, rg.mean, rg.se)
		if c.rg > 0 {
			near(t, c.what, rg.mean, c.rg, tolerance+2*rg.se)
		}
		if before != nil && !raceDetector && before.mean-rg.mean < 3*math.Hypot(before.se, rg.se) {
			t.Errorf("%s: %.3f ± %.3f nm is not clearly less than %.3f ± %.3f nm",
				c.what, rg.mean, rg.se, before.mean, before.se)
		}
		before = &rg
	}
}

// meanRg runs a chain and leaves out the first tenth.
func meanRg(t *testing.T, c surroundings, steps int) estimate {
	t.Helper()
	d, err := newDynamics(newModel(c.sequence, c.conditions), newSource(1, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	advance(t, d, steps/10)
	samples := steps * 9 / 10 / 100
	rg := series{half: int64(samples) / 2}
	for range samples {
		advance(t, d, 100)
		rg.add(d.model.gyrationRadius(d.x))
	}
	return pool([]*series{&rg})
}
