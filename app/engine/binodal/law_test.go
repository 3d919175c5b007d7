package binodal

import (
	"math"
	"math/rand/v2"
	"testing"
)

// truth is a law with known parameters, similar to those of a protein of 24 residues.
func truth() *Law {
	return &Law{Tc: Concentration{Mean: 341.7}, Width: Concentration{Mean: 900}, Rhoc: Concentration{Mean: 171}, Slope: Concentration{Mean: 1.9}}
}

var temperatures = []float64{283, 293, 303, 313, 323, 331}

// pairsOf returns points on a law, with errors that grow towards Tc. Gaussian noise of
// noise standard errors is added if random is not nil.
func pairsOf(l *Law, at []float64, noise float64, random *rand.Rand) []fitPoint {
	var pairs []fitPoint
	for i, temperature := range at {
		dense, dilute := l.Phases(temperature)
		q := fitPoint{temperature, Concentration{dense, 2 + float64(i)}, Concentration{dilute, 0.4 + 0.7*float64(i)}}
		if random != nil {
			q.dense.Mean += noise * q.dense.SE * random.NormFloat64()
			q.dilute.Mean += noise * q.dilute.SE * random.NormFloat64()
		}
		pairs = append(pairs, q)
	}
	return pairs
}

func fitted(t *testing.T, pairs []fitPoint) *Law {
	t.Helper()
	l, reason := fitLaw(pairs, pairs[len(pairs)-1].temperature)
	if l == nil {
		t.Fatal(reason)
	}
	return l
}

func numbers(l *Law) []Concentration { return []Concentration{l.Tc, l.Width, l.Rhoc, l.Slope} }

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

func moments(values []float64) (mean, sd float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sd += square(v-mean) / float64(len(values)-1)
	}
	return mean, math.Sqrt(sd)
}

// Over many samples, the deviation of a parameter from its true value divided by its
// standard error has mean 0 and standard deviation 1.
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
		// Allow five standard errors of a mean and of a standard deviation.
		if mean, sd := moments(values); math.Abs(mean) > 5/math.Sqrt(samples) || math.Abs(sd-1) > 5/math.Sqrt(2*samples) {
			t.Errorf("%s: deviations in errors have mean %.3f and standard deviation %.3f", names[k], mean, sd)
		}
	}
	if free := 2 * (len(temperatures) - 2); math.Abs(chi-float64(free)) > 0.3 {
		t.Errorf("mean chi-square %.2f of both lines, want %d", chi, free)
	}
	if beyond < samples/400 || beyond > samples/40 {
		t.Errorf("%d of %d chi-squares exceed chance, want about 1 %%", beyond, samples)
	}
}

// Points that scatter more than their errors inflate the errors of the law.
func TestErrorsGrowWherePointsDisagree(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	l := fitted(t, pairsOf(truth(), temperatures, 8, random))
	free := float64(l.Free)
	if l.WidthScale != math.Sqrt(l.WidthChi2/free) || l.WidthScale < 2 || l.DiameterScale != math.Sqrt(l.DiameterChi2/free) {
		t.Errorf("factors %.3f and %.3f with chi-squares %.3g and %.3g", l.WidthScale, l.DiameterScale, l.WidthChi2, l.DiameterChi2)
	}
	// Apart from that factor, the errors of a line depend only on the errors of the
	// points.
	if clean := fitted(t, pairsOf(truth(), temperatures, 0, nil)); math.Abs(l.Slope.SE/clean.Slope.SE/l.DiameterScale-1) > 1e-9 {
		t.Errorf("error of the slope %g, of the same points on a line %g", l.Slope.SE, clean.Slope.SE)
	}
}
