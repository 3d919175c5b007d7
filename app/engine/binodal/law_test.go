package binodal

import (
	"math"
	"math/rand/v2"
	"testing"
)

// truth is a law of known numbers, as of a protein of 24 residues.
func truth() *Law {
	return &Law{Tc: Level{Mean: 341.7}, Width: Level{Mean: 900}, Rhoc: Level{Mean: 171}, Slope: Level{Mean: 1.9}}
}

var temperatures = []float64{283, 293, 303, 313, 323, 331}

// pairsOf are points of a law with normal noise, whose errors grow towards Tc; noise 0 has none.
func pairsOf(l *Law, at []float64, noise float64, random *rand.Rand) []phasePair {
	var pairs []phasePair
	for i, temperature := range at {
		dense, dilute := l.At(temperature)
		q := phasePair{temperature, Level{dense, 2 + float64(i)}, Level{dilute, 0.4 + 0.7*float64(i)}}
		if random != nil {
			q.dense.Mean += noise * q.dense.SE * random.NormFloat64()
			q.dilute.Mean += noise * q.dilute.SE * random.NormFloat64()
		}
		pairs = append(pairs, q)
	}
	return pairs
}

func fitted(t *testing.T, pairs []phasePair) *Law {
	t.Helper()
	l, reason := fitLaw(pairs, pairs[len(pairs)-1].temperature)
	if l == nil {
		t.Fatal(reason)
	}
	return l
}

func numbers(l *Law) []Level { return []Level{l.Tc, l.Width, l.Rhoc, l.Slope} }

var names = []string{"Tc", "width", "rhoc", "slope"}

func TestFitRecoversALawWithoutNoise(t *testing.T) {
	want := truth()
	for _, at := range [][]float64{temperatures, temperatures[:3], {283, 341.6, 341.69}, {273.15, 274, 275}} {
		l := fitted(t, pairsOf(want, at, 0, nil))
		for k, got := range numbers(l) {
			if w := numbers(want)[k].Mean; math.Abs(got.Mean-w) > 1e-6*math.Abs(w) {
				t.Errorf("%v: %s %.9g, want %.9g", at, names[k], got.Mean, w)
			}
		}
		if l.WidthChi2 > 1e-9 || l.DiameterChi2 > 1e-9 || l.Free != len(at)-2 {
			t.Errorf("%v: chi-squares %g and %g with %d degrees of freedom", at, l.WidthChi2, l.DiameterChi2, l.Free)
		}
	}
}

// moments returns mean and standard deviation.
func moments(values []float64) (mean, sd float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sd += square(v-mean) / float64(len(values)-1)
	}
	return mean, math.Sqrt(sd)
}

// Over many samples, a number deviates from the truth by its standard error: the mean of the
// deviations is nothing, and their standard deviation one.
func TestErrorsAreThoseOfManySamples(t *testing.T) {
	const samples = 2000
	want, random := truth(), rand.New(rand.NewPCG(1, 2))
	pulls := make([][]float64, len(names))
	beyond, chi := 0, 0.0
	for range samples {
		l := fitted(t, pairsOf(want, temperatures, 1, random))
		for k, got := range numbers(l) {
			pulls[k] = append(pulls[k], (got.Mean-numbers(want)[k].Mean)/got.SE)
		}
		chi += (l.WidthChi2 + l.DiameterChi2) / samples
		if l.WidthScale > 1 {
			beyond++
		}
	}
	for k, values := range pulls {
		// Five standard errors of a mean and of a standard deviation.
		if mean, sd := moments(values); math.Abs(mean) > 5/math.Sqrt(samples) || math.Abs(sd-1) > 5/math.Sqrt(2*samples) {
			t.Errorf("%s: deviations in errors have mean %.3f and standard deviation %.3f", names[k], mean, sd)
		}
	}
	if free := 2 * (len(temperatures) - 2); math.Abs(chi-float64(free)) > 0.3 {
		t.Errorf("mean chi-square %.2f of both lines, want %d", chi, free)
	}
	if beyond < samples/400 || beyond > samples/40 {
		t.Errorf("%d of %d chi-squares are beyond chance, which is for 1 %%", beyond, samples)
	}
}

// Points worse than their errors make the errors of the law larger.
func TestErrorsGrowWherePointsDisagree(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	l := fitted(t, pairsOf(truth(), temperatures, 8, random))
	free := float64(l.Free)
	if l.WidthScale != math.Sqrt(l.WidthChi2/free) || l.WidthScale < 2 || l.DiameterScale != math.Sqrt(l.DiameterChi2/free) {
		t.Errorf("factors %.3f and %.3f with chi-squares %.3g and %.3g", l.WidthScale, l.DiameterScale, l.WidthChi2, l.DiameterChi2)
	}
	// Errors of a line do not depend on what is on it.
	if clean := fitted(t, pairsOf(truth(), temperatures, 0, nil)); math.Abs(l.Slope.SE/clean.Slope.SE/l.DiameterScale-1) > 1e-9 {
		t.Errorf("error of the slope %g, of the same points on a line %g", l.Slope.SE, clean.Slope.SE)
	}
}
