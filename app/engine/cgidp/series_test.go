package cgidp

import (
	"math"
	"math/rand/v2"
	"testing"
)

// blocked is the error by Flyvbjerg and Petersen from all numbers at hand.
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

func seriesOf(values []float64) *series {
	s := &series{half: int64(len(values)) / 2}
	for _, v := range values {
		s.add(v)
	}
	return s
}

func TestSeriesMatchesBlocking(t *testing.T) {
	for _, n := range []int{16, 17, 31, 100, 1000, 4097} {
		values := correlated(n, 0.9)
		near(t, "standard error", seriesOf(values).standardError(), blocked(values), 1e-12)
	}
}

func TestStandardErrorNeedsBlocks(t *testing.T) {
	if se := seriesOf(correlated(15, 0)).standardError(); !math.IsNaN(se) {
		t.Errorf("error of 15 numbers is %g, want none", se)
	}
}

// For correlation a^lag the error of the mean is sqrt((1+a)/(1-a)/n).
func TestStandardErrorOfCorrelated(t *testing.T) {
	const n, keep = 1 << 18, 0.95
	s := seriesOf(correlated(n, keep))
	want := math.Sqrt((1 + keep) / (1 - keep) / n)
	near(t, "standard error", s.standardError(), want, 0.3*want)
	e := pool([]*series{s})
	near(t, "mean", e.mean, 5, 4*want)
	near(t, "sd", e.sd, 1, 0.03)
	near(t, "independent samples", e.independent, n*(1-keep)/(1+keep), 0.5*n*(1-keep)/(1+keep))
	if !e.converged() {
		t.Errorf("not converged: %+v", e)
	}
}

func TestPool(t *testing.T) {
	values := correlated(4096, 0.5)
	a, b := seriesOf(values[:2048]), seriesOf(values[2048:])
	e := pool([]*series{a, b})
	whole := seriesOf(values).all()
	near(t, "mean", e.mean, whole.mean, 1e-12)
	near(t, "sd", e.sd, whole.sd(), 1e-12)
	near(t, "se", e.se, math.Hypot(a.standardError(), b.standardError())/2, 1e-12)
	near(t, "drift", e.drift, (a.halves[1].mean-a.halves[0].mean+b.halves[1].mean-b.halves[0].mean)/2, 1e-12)
}

func TestDriftIsNotConverged(t *testing.T) {
	values := correlated(4096, 0.5)
	for i := range values {
		values[i] += float64(i) / 4096
	}
	if e := pool([]*series{seriesOf(values)}); e.converged() {
		t.Errorf("a drifting series counts as converged: %+v", e)
	}
}

func TestNothingKnown(t *testing.T) {
	e := pool([]*series{{}})
	if !math.IsNaN(e.mean) || !math.IsNaN(e.se) || e.converged() {
		t.Errorf("estimate of nothing is %+v", e)
	}
}

func TestPairSums(t *testing.T) {
	x := []vec{{0, 0, 0}, {0.3, 0, 0}, {0.6, 0, 0}, {0.9, 0, 0}, {0.9, 0.4, 0}}
	a, b := newPairSums(5), newPairSums(5)
	a.add(x)
	x[4] = vec{0.9, 0.8, 0}
	b.add(x)
	a.merge(b)
	near(t, "distance 0-3", a.meanDistance(0, 3), 0.9, 1e-12)
	near(t, "distance 4-3", a.meanDistance(4, 3), 0.6, 1e-12)
	near(t, "distance 2-2", a.meanDistance(2, 2), 0, 0)
	near(t, "contact 0-3", a.contact(0, 3), 0, 0) // neighbours do not count
	near(t, "contact 0-4", a.contact(4, 0), 0.5, 0)
	near(t, "rms at 4", a.rms()[4], math.Sqrt((0.81+0.16+0.81+0.64)/2), 1e-12)
	near(t, "rms at 1", a.rms()[1], math.Sqrt((6*0.09+0.16+0.64)/8), 1e-12)
}

func TestFitScaling(t *testing.T) {
	for _, n := range []int{12, 24, 441} {
		for _, nu := range []float64{0.33, 0.5, 0.598, 1} {
			rms := make([]float64, n)
			for s := 1; s < n; s++ {
				rms[s] = 0.55 * math.Pow(float64(s), nu)
			}
			rms[3] *= 2 // small separations are not fitted
			fit := fitScaling(rms)
			near(t, "nu", fit.nu, nu, 1e-5)
			near(t, "r0", fit.r0, 0.55, 1e-4)
			near(t, "misfit", fit.misfit, 0, 1e-5)
			near(t, "law", fit.at(9), 0.55*math.Pow(9, nu), 1e-4)
		}
	}
	if fit := fitScaling(make([]float64, 11)); !math.IsNaN(fit.nu) {
		t.Errorf("11 residues give nu %g, want none", fit.nu)
	}
}

func TestMisfitOfNoPowerLaw(t *testing.T) {
	rms := make([]float64, 50)
	for s := range rms {
		rms[s] = 2 + math.Sin(float64(s)/5)
	}
	if fit := fitScaling(rms); fit.misfit < maxMisfit {
		t.Errorf("misfit %g of a wave, want above %g", fit.misfit, maxMisfit)
	}
}
