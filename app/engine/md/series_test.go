package md

import (
	"math"
	"math/rand/v2"
	"testing"

	"molrun/app/engine/enginetest"
)

// blocked is the error by Flyvbjerg and Petersen, computed from all numbers.
func blocked(values []float64) float64 {
	largest := math.NaN()
	for len(values) >= minBlocks {
		mean := sum(values) / float64(len(values))
		variance := 0.0
		for _, v := range values {
			variance += (v - mean) * (v - mean)
		}
		n := float64(len(values))
		if se := math.Sqrt(variance / n / (n - 1)); !(se <= largest) {
			largest = se
		}
		var half []float64
		for i := 0; i+1 < len(values); i += 2 {
			half = append(half, (values[i]+values[i+1])/2)
		}
		values = half
	}
	return largest
}

// correlated are numbers with mean 5, variance 1 and correlation keep^lag.
func correlated(n int, keep float64) []float64 {
	rng := rand.New(rand.NewPCG(3, 4))
	values := make([]float64, n)
	v := rng.NormFloat64()
	for i := range values {
		values[i] = 5 + v
		v = keep*v + math.Sqrt(1-keep*keep)*rng.NormFloat64()
	}
	return values
}

func seriesOf(values []float64) Series {
	s := NewSeries(int64(len(values)))
	for _, v := range values {
		s.Add(v)
	}
	return s
}

func TestSeriesMatchesBlocking(t *testing.T) {
	for _, n := range []int{16, 17, 31, 100, 1000, 4097} {
		values := correlated(n, 0.9)
		s := seriesOf(values)
		enginetest.Near(t, "standard error", s.StandardError(), blocked(values), 1e-12)
	}
}

func TestStandardErrorNeedsEnoughBlocks(t *testing.T) {
	s := seriesOf(correlated(15, 0))
	if se := s.StandardError(); !math.IsNaN(se) {
		t.Errorf("error of 15 numbers is %g, want none", se)
	}
}

// For correlation a^lag the error of the mean is sqrt((1+a)/(1-a)/n).
func TestStandardErrorOfCorrelatedNumbers(t *testing.T) {
	const n, keep = 1 << 18, 0.95
	s := seriesOf(correlated(n, keep))
	want := math.Sqrt((1 + keep) / (1 - keep) / n)
	enginetest.Near(t, "standard error", s.StandardError(), want, 0.3*want)
	e := Pool([]Series{s})
	enginetest.Near(t, "mean", e.Mean, 5, 4*want)
	enginetest.Near(t, "sd", e.SD, 1, 0.03)
	enginetest.Near(t, "independent samples", e.Independent, n*(1-keep)/(1+keep), 0.5*n*(1-keep)/(1+keep))
	if !e.Converged() {
		t.Errorf("not converged: %+v", e)
	}
}

func TestPool(t *testing.T) {
	values := correlated(4096, 0.5)
	a, b := seriesOf(values[:2048]), seriesOf(values[2048:])
	e := Pool([]Series{a, b})
	s := seriesOf(values)
	whole := s.all()
	enginetest.Near(t, "mean", e.Mean, whole.mean, 1e-12)
	enginetest.Near(t, "sd", e.SD, whole.sd(), 1e-12)
	enginetest.Near(t, "se", e.SE, math.Hypot(a.StandardError(), b.StandardError())/2, 1e-12)
	enginetest.Near(t, "drift", e.Drift, (a.halves[1].mean-a.halves[0].mean+b.halves[1].mean-b.halves[0].mean)/2, 1e-12)
}

func TestDriftPreventsConvergence(t *testing.T) {
	values := correlated(4096, 0.5)
	for i := range values {
		values[i] += float64(i) / 4096
	}
	if e := Pool([]Series{seriesOf(values)}); e.Converged() {
		t.Errorf("a drifting series counts as converged: %+v", e)
	}
}

func TestEstimateOfNothing(t *testing.T) {
	e := Pool([]Series{{}})
	if !math.IsNaN(e.Mean) || !math.IsNaN(e.SE) || e.Converged() {
		t.Errorf("estimate of nothing is %+v", e)
	}
}

func TestPairSums(t *testing.T) {
	x := []Vec{{0, 0, 0}, {0.3, 0, 0}, {0.6, 0, 0}, {0.9, 0, 0}, {0.9, 0.4, 0}}
	a, b := NewPairSums(5), NewPairSums(5)
	a.Add(x)
	x[4] = Vec{0.9, 0.8, 0}
	b.Add(x)
	a.Merge(b)
	if a.Frames() != 2 {
		t.Errorf("%d frames, want 2", a.Frames())
	}
	enginetest.Near(t, "distance 0-3", a.MeanDistance(0, 3), 0.9, 1e-12)
	enginetest.Near(t, "distance 4-3", a.MeanDistance(4, 3), 0.6, 1e-12)
	enginetest.Near(t, "distance 2-2", a.MeanDistance(2, 2), 0, 0)
	enginetest.Near(t, "contact 0-3", a.Contact(0, 3), 0, 0) // neighbours do not count
	enginetest.Near(t, "contact 0-4", a.Contact(4, 0), 0.5, 0)
	enginetest.Near(t, "rms at 4", a.RMS()[4], math.Sqrt((0.81+0.16+0.81+0.64)/2), 1e-12)
	enginetest.Near(t, "rms at 1", a.RMS()[1], math.Sqrt((6*0.09+0.16+0.64)/8), 1e-12)
}

func TestContactsAreWithinOneNanometre(t *testing.T) {
	p := NewPairSums(5)
	for _, r := range []float64{0.5, 0.999, 1, 1.001, 7, 8, 9} {
		p.Add([]Vec{{}, {}, {}, {}, {X: r}})
	}
	enginetest.Near(t, "contact", p.Contact(0, 4), 2.0/7, 1e-12)
}

func TestFitScaling(t *testing.T) {
	for _, n := range []int{12, 24, 441} {
		for _, nu := range []float64{0.33, 0.5, 0.598, 1} {
			rms := make([]float64, n)
			for s := 1; s < n; s++ {
				rms[s] = 0.55 * math.Pow(float64(s), nu)
			}
			rms[3] *= 2 // small separations are not fitted
			fit := FitScaling(rms)
			enginetest.Near(t, "nu", fit.Nu, nu, 1e-5)
			enginetest.Near(t, "r0", fit.R0, 0.55, 1e-4)
			enginetest.Near(t, "misfit", fit.Misfit, 0, 1e-5)
			enginetest.Near(t, "law", fit.At(9), 0.55*math.Pow(9, nu), 1e-4)
		}
	}
	if fit := FitScaling(make([]float64, 11)); !math.IsNaN(fit.Nu) {
		t.Errorf("11 residues give nu %g, want none", fit.Nu)
	}
}

func TestMisfitWithoutPowerLaw(t *testing.T) {
	rms := make([]float64, 50)
	for s := range rms {
		rms[s] = 2 + math.Sin(float64(s)/5)
	}
	if fit := FitScaling(rms); fit.Misfit < MaxMisfit {
		t.Errorf("misfit %g of a wave, want above %g", fit.Misfit, MaxMisfit)
	}
}

func TestMeanConvergesWithFiftySamplesAndAgreeingHalves(t *testing.T) {
	const se = 0.1
	largest := 3 * math.Sqrt2 * se // of the drift: three standard errors of the difference
	for _, tt := range []struct {
		independent, drift float64
		want               bool
	}{
		{50, 0, true},
		{49.9, 0, false},
		{5, 0, false},
		{1000, 0.99 * largest, true},
		{1000, -0.99 * largest, true},
		{1000, 1.01 * largest, false},
		{1000, -1.01 * largest, false},
		{math.NaN(), 0, false},
		{1000, math.NaN(), false},
	} {
		if got := (Estimate{SE: se, Independent: tt.independent, Drift: tt.drift}).Converged(); got != tt.want {
			t.Errorf("%g samples, drift %g: %v, want %v", tt.independent, tt.drift, got, tt.want)
		}
	}
}
