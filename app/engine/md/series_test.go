package md

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

// correlated returns values with mean 5, variance 1 and correlation keep^lag.
func correlated(n int, keep float64) []float64 { return drawn(rand.New(rand.NewPCG(3, 4)), n, keep) }

func drawn(rng *rand.Rand, n int, keep float64) []float64 {
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

// A series that stores only blocks gives the same error as one that stores all values.
func TestSeriesNeedsNoMoreThanItsBlocks(t *testing.T) {
	for n, by := range map[int]float64{16: 1e-12, 511: 1e-12, 4096: 0.1, 40_000: 0.1} {
		values := correlated(n, 0.9)
		s := seriesOf(values)
		want := math.Sqrt(max(correlatedVariance(values), blockedVariance(values)))
		enginetest.Near(t, fmt.Sprintf("error of %d numbers", n), s.StandardError(), want, by*want)
	}
}

// slowIn returns a process with an integrated autocorrelation time of 20 samples for part
// of the variance, and of 0.6 for the rest.
func slowIn(rng *rand.Rand, n int, part float64) []float64 {
	keep := func(time float64) float64 { return (2*time - 1) / (2*time + 1) }
	values, fast := drawn(rng, n, keep(20)), drawn(rng, n, keep(0.6))
	for i := range values {
		values[i] = math.Sqrt(part)*values[i] + math.Sqrt(1-part)*fast[i]
	}
	return values
}

// The quoted errors match the scatter of repeated runs: short, typical and long ones,
// with one replica and with several, each too short by itself.
func TestQuotedErrorsAreTheScatterOfRuns(t *testing.T) {
	for _, tt := range []struct {
		n, replicas int
		part        float64
	}{
		{200, 1, 1},
		{400, 1, 1},
		{1000, 1, 1},
		{2000, 1, 1},
		{8000, 1, 1},
		{8000, 1, 0.2},
		{200, 8, 1},
		{1000, 4, 1},
		{400, 8, 0.2},
		{200, 8, 0},
	} {
		rng := rand.New(rand.NewPCG(6, uint64(tt.n)))
		var means moments
		squares, times := 0.0, 0.0
		const runs = 400
		for range runs {
			var replicas []Series
			for range tt.replicas {
				replicas = append(replicas, seriesOf(slowIn(rng, tt.n, tt.part)))
			}
			e := Pool(replicas)
			means.add(e.Mean)
			squares += e.SE * e.SE / runs
			times += e.Time / runs
		}
		if ratio := means.sd() / math.Sqrt(squares); ratio < 0.8 || ratio > 1.25 {
			t.Errorf("%+v: the runs differ by %.3g of their errors", tt, ratio)
		}
		if want := 20*tt.part + 0.6*(1-tt.part); tt.replicas == 1 && tt.n >= 1000 && math.Abs(times/want-1) > 0.35 {
			t.Errorf("%+v: an autocorrelation time of %.3g samples, want %.3g", tt, times, want)
		}
	}
}

// In runs reported as converged, the errors hold even for slow motions of small
// amplitude, which no estimator detects in short runs.
func TestConvergedRunsHaveHonestErrors(t *testing.T) {
	for _, part := range []float64{1, 0.5, 0.2} {
		for _, replicas := range []int{1, 8} {
			rng := rand.New(rand.NewPCG(7, uint64(100*part)))
			squares, converged := 0.0, 0.0
			for k := range 400 {
				n := []int{100, 300, 1000, 4000}[k%4]
				var all []Series
				for range replicas {
					all = append(all, seriesOf(slowIn(rng, n/replicas*4, part)))
				}
				if e := Pool(all); e.Converged() {
					z := math.Abs(e.Mean-5*(math.Sqrt(part)+math.Sqrt(1-part))) / e.SE
					converged++
					squares += z * z
				}
			}
			if rms := math.Sqrt(squares / converged); converged < 100 || rms > 1.35 {
				t.Errorf("a slow part of %g, %d replicas: %g of 400 runs are converged, and off by %.3g of their errors", part, replicas, converged, rms)
			}
		}
	}
}

// Each replica must be long enough, and the replicas must agree.
func TestReplicasHaveToBeLongAndAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	for _, tt := range []struct {
		n, replicas int
		apart       float64
		want        bool
	}{
		{4000, 4, 0, true}, {4000, 4, 0.5, false}, {200, 64, 0, false}, {400, 1, 0, false}, {6000, 1, 0, true},
	} {
		var all []Series
		for k := range tt.replicas {
			values := drawn(rng, tt.n, 39./41)
			chance := sum(values)/float64(tt.n) - 5
			for i := range values {
				values[i] += tt.apart*float64(k) - chance
			}
			all = append(all, seriesOf(values))
		}
		if e := Pool(all); e.Converged() != tt.want {
			t.Errorf("%+v: %+v", tt, e)
		}
	}
}

func TestBeyondChance(t *testing.T) {
	for free, limit := range map[int]float64{1: 6.635, 2: 9.210, 4: 13.277, 10: 23.209} { // from tables
		if ExceedsChance(0.98*limit, free) || !ExceedsChance(1.02*limit, free) {
			t.Errorf("%d degrees of freedom: not 1 %% beyond %g", free, limit)
		}
	}
}

// For correlation a^lag, the error of the mean is sqrt((1+a)/(1-a)/n).
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
	whole := s.all
	enginetest.Near(t, "mean", e.Mean, whole.mean, 1e-12)
	enginetest.Near(t, "sd", e.SD, whole.sd(), 1e-12)
	enginetest.Near(t, "se", e.SE, max(math.Hypot(a.StandardError(), b.StandardError()), math.Abs(a.Mean()-b.Mean()))/2, 1e-12)
	enginetest.Near(t, "drift", e.Drift, (a.halves[1].mean-a.halves[0].mean+b.halves[1].mean-b.halves[0].mean)/2, 1e-12)
}

// If the replica means differ by more than their errors, the pooled error is derived from
// their spread; if they agree, it is derived from the errors within the replicas. A
// single replica keeps its own error.
func TestPoolComparesReplicas(t *testing.T) {
	const n, keep = 4096, 0.5
	within := math.Sqrt((1 + keep) / (1 - keep) / n)
	for name, tt := range map[string]struct {
		shifts   []float64
		want, by float64
	}{
		"one":       {[]float64{0.3}, within, 0.3 * within},
		"alike":     {[]float64{0, 0, 0, 0}, within / 2, 0.3 * within / 2},
		"different": {[]float64{-0.6, -0.2, 0.2, 0.6}, math.Sqrt(0.8/3) / 2, 1e-12},
	} {
		rng := rand.New(rand.NewPCG(1, 7))
		var replicas []Series
		for _, shift := range tt.shifts {
			values := drawn(rng, n, keep)
			chance := sum(values)/n - 5
			for i := range values {
				values[i] += shift - chance
			}
			replicas = append(replicas, seriesOf(values))
		}
		e := Pool(replicas)
		enginetest.Near(t, name+": error", e.SE, tt.want, tt.by)
		if len(replicas) == 1 && e.SE != replicas[0].StandardError() {
			t.Errorf("the error of one replica is %g, want its own, %g", e.SE, replicas[0].StandardError())
		}
		if got, want := e.Converged(), name != "different"; got != want {
			t.Errorf("%s: converged %v, want %v: %+v", name, got, want, e)
		}
	}
}

// The replicas of an interrupted run have different lengths and are weighted by length.
func TestPoolWeighsReplicasByLength(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 8))
	long, short := drawn(rng, 8192, 0), drawn(rng, 64, 0)
	e := Pool([]Series{seriesOf(long), seriesOf(short), NewSeries(100)})
	enginetest.Near(t, "error", e.SE, 1/math.Sqrt(8256), 0.5/math.Sqrt(8256))
}

func TestUnknownErrors(t *testing.T) {
	if e := Pool([]Series{{}}); !math.IsNaN(e.Mean) || !math.IsNaN(e.SE) || e.Converged() {
		t.Errorf("estimate of nothing is %+v", e)
	}
	if e := Pool([]Series{seriesOf(correlated(15, 0)), seriesOf(correlated(15, 0.5))}); !math.IsNaN(e.SE) || math.IsNaN(e.Mean) {
		t.Errorf("two replicas of 15 samples: %+v", e)
	}
}

// idealChain returns a random walk of n beads with bonds of 0.5 nm.
func idealChain(rng *rand.Rand, n int) []Vec {
	x := make([]Vec, n)
	for i := 1; i < n; i++ {
		bond := Vec{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		x[i] = x[i-1].AddScaled(0.5/bond.Norm(), bond)
	}
	return x
}

func TestErrorOfTheExponentIsThatOfRepeatedRuns(t *testing.T) {
	const runs, frames, residues = 60, 320, 24
	rng := rand.New(rand.NewPCG(1, 9))
	var found Series
	squares := 0.0
	for range runs {
		sums, parts := NewPairSums(residues), NewScalingParts(residues, frames)
		for range frames {
			sums.Add(idealChain(rng, residues))
			parts.Update(sums)
		}
		nu := parts.Nu()
		found.Add(FitScaling(sums.RMS()).Nu)
		enginetest.Near(t, "exponent", nu.Mean(), FitScaling(sums.RMS()).Nu, 0.01)
		squares += math.Pow(nu.StandardError(), 2) / runs
	}
	spread := Pool([]Series{found}).SD
	if ratio := math.Sqrt(squares) / spread; ratio < 0.75 || ratio > 1.5 {
		t.Errorf("errors of %.3g, and the runs differ by %.3g", math.Sqrt(squares), spread)
	}
	enginetest.Near(t, "mean exponent", found.Mean(), 0.5, 0.02)
}

func TestExponentOfFewFramesHasNoError(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	for residues, frames := range map[int]int{24: minBlocks - 1, 10: 100} {
		sums, parts := NewPairSums(residues), NewScalingParts(residues, int64(frames))
		for range frames {
			sums.Add(idealChain(rng, residues))
			parts.Update(sums)
		}
		nu := parts.Nu()
		if se := nu.StandardError(); !math.IsNaN(se) {
			t.Errorf("%d residues, %d frames: error %g, want none", residues, frames, se)
		}
	}
}

// An exponent at an end of the search range is undetermined.
func TestExponentAtTheEndOfTheRangeIsUnknown(t *testing.T) {
	falling, steep := make([]float64, 50), make([]float64, 50)
	for s := range falling {
		falling[s], steep[s] = 3-0.05*float64(s), float64(s*s)
	}
	for _, rms := range [][]float64{falling, steep} {
		if fit := FitScaling(rms); !math.IsNaN(fit.Nu) || !math.IsNaN(fit.At(9)) || math.IsNaN(fit.Misfit) {
			t.Errorf("%+v", fit)
		}
	}
}

func TestPairSums(t *testing.T) {
	x := []Vec{{0, 0, 0}, {0.3, 0, 0}, {0.6, 0, 0}, {0.9, 0, 0}, {0.9, 0.4, 0}}
	a, b := NewPairSums(5), NewPairSums(5)
	a.Add(x)
	x[4] = Vec{0.9, 0.8, 0}
	b.Add(x)
	a.Merge(b)
	must.Equal(t, "frames", a.Frames(), 2)
	enginetest.Near(t, "distance 0-3", a.MeanDistance(0, 3), 0.9, 1e-12)
	enginetest.Near(t, "distance 4-3", a.MeanDistance(4, 3), 0.6, 1e-12)
	enginetest.Near(t, "distance 2-2", a.MeanDistance(2, 2), 0, 0)
	enginetest.Near(t, "contact 0-3", a.Contact(0, 3), 0, 0) // neighbors along the chain do not count
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
	largest := 3 * math.Sqrt2 * se // of the drift: about two standard errors of the difference
	for _, tt := range []struct {
		independent, drift, shortest float64
		want                         bool
	}{
		{50, 0, 20, true},
		{49.9, 0, 20, false},
		{5, 0, 20, false},
		{1000, 0, 19.9, false},
		{1000, 0.99 * largest, 20, true},
		{1000, -0.99 * largest, 20, true},
		{1000, 1.01 * largest, 20, false},
		{1000, -1.01 * largest, 20, false},
		{math.NaN(), 0, 20, false},
		{1000, math.NaN(), 20, false},
	} {
		e := Estimate{SE: se, Independent: tt.independent, Drift: tt.drift, Time: 1, Shortest: tt.shortest}
		if got := e.Converged(); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
		e.Disagree = true
		must.Equal(t, "converged although replicas disagree", e.Converged(), false)
	}
}
