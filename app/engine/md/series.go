package md

import "math"

const (
	minBlocks    = 16  // minimum number of values for an error estimate
	leastLevel   = 32  // minimum number of blocks at a level of block averaging
	seriesBlocks = 512 // maximum number of blocks stored
	windowLength = 6   // of the autocorrelation function, in integrated autocorrelation times
)

// Series summarizes correlated values as they arrive. It stores the means of equal blocks
// instead of the values. When there are seriesBlocks blocks, they are merged in pairs. A
// copy of a Series is independent of the original.
type Series struct {
	half   int64 // number of values in the first half of the run
	halves [2]moments
	all    moments // all values

	size   int64   // values per block
	open   moments // the incomplete block
	count  int64   // complete blocks
	blocks [seriesBlocks]float64
}

// NewSeries returns a series for the given number of samples, which determines where its
// first half ends.
func NewSeries(samples int64) Series { return Series{half: samples / 2} }

// moments accumulates the count, the mean, and the sum of squared deviations from the
// mean.
type moments struct {
	n        int64
	mean, m2 float64
}

func (m *moments) add(v float64) {
	m.n++
	d := v - m.mean
	m.mean += d / float64(m.n)
	m.m2 += d * (v - m.mean)
}

// merge adds the values of o.
func (m *moments) merge(o moments) {
	if o.n == 0 {
		return
	}
	n := m.n + o.n
	d := o.mean - m.mean
	m.m2 += o.m2 + d*d*float64(m.n)*float64(o.n)/float64(n)
	m.mean += d * float64(o.n) / float64(n)
	m.n = n
}

// sd returns the standard deviation, or NaN for fewer than two values.
func (m *moments) sd() float64 {
	if m.n < 2 {
		return math.NaN()
	}
	return math.Sqrt(m.m2 / float64(m.n-1))
}

func (m *moments) archive(a *Archive) {
	a.Integer(&m.n)
	a.Float(&m.mean)
	a.Float(&m.m2)
}

// Add appends a value.
func (s *Series) Add(v float64) {
	part := 0
	if s.all.n >= s.half {
		part = 1
	}
	s.halves[part].add(v)
	s.all.add(v)
	s.open.add(v)
	if s.open.n < s.size {
		return
	}
	s.size = max(s.size, 1)
	s.blocks[s.count] = s.open.mean
	s.count++
	s.open = moments{}
	if s.count == seriesBlocks {
		s.halveBlocks()
	}
}

// halveBlocks merges blocks in pairs.
func (s *Series) halveBlocks() {
	s.count /= 2
	s.size *= 2
	for k := range s.count {
		s.blocks[k] = (s.blocks[2*k] + s.blocks[2*k+1]) / 2
	}
}

// Count returns the number of values.
func (s *Series) Count() int64 { return s.all.n }

// Mean returns the mean of all values, or 0 if there are none.
func (s *Series) Mean() float64 { return s.all.mean }

// StandardError returns the standard error of the mean, or NaN for fewer than 16 values.
// It is the larger of two estimates. The sum of the autocorrelation function is accurate
// even for runs of ten autocorrelation times, but is truncated before it detects slow
// motions of small amplitude; block averaging detects those in long runs.
func (s *Series) StandardError() float64 {
	if s.count < minBlocks {
		return math.NaN()
	}
	values := s.blocks[:s.count]
	return math.Sqrt(max(correlatedVariance(values), blockedVariance(values)))
}

// correlatedVariance returns the variance of the mean of correlated values: the sum of
// their autocovariances up to a window of windowLength times the integrated
// autocorrelation time (Sokal), corrected for the bias from subtracting the sample mean
// (U. Wolff, Computer Physics Communications 2004, 156, 143).
func correlatedVariance(values []float64) float64 {
	var all moments
	for _, v := range values {
		all.add(v)
	}
	n := float64(len(values))
	variance := all.m2 / n
	if variance == 0 {
		return 0
	}
	time, lag := 0.5, 0
	for lag < len(values)/2 && float64(lag) < windowLength*time {
		lag++
		sum := 0.0
		for k, v := range values[lag:] {
			sum += (v - all.mean) * (values[k] - all.mean)
		}
		time += sum / (n - float64(lag)) / variance
	}
	return variance * 2 * max(time, 0.5) / n * (1 + float64(2*lag+1)/n)
}

// blockedVariance returns the variance of the mean of correlated values by block
// averaging (Flyvbjerg and Petersen, J. Chem. Phys. 1989, 91, 461): the maximum over the
// levels that have enough blocks.
func blockedVariance(values []float64) float64 {
	largest := 0.0
	for level := append([]float64{}, values...); len(level) >= leastLevel; {
		var all moments
		for _, v := range level {
			all.add(v)
		}
		largest = max(largest, all.m2/float64(all.n)/float64(all.n-1))
		for k := range len(level) / 2 {
			level[k] = (level[2*k] + level[2*k+1]) / 2
		}
		level = level[:len(level)/2]
	}
	return largest
}

// Archive saves or restores the sums.
func (s *Series) Archive(a *Archive) {
	for _, m := range []*moments{&s.halves[0], &s.halves[1], &s.all, &s.open} {
		m.archive(a)
	}
	a.Integer(&s.size)
	a.Integer(&s.count)
	for k := range max(0, min(s.count, seriesBlocks)) {
		a.Float(&s.blocks[k])
	}
}

// Estimate is an estimate of a mean. Unknown values are NaN.
type Estimate struct {
	Mean, SE, SD float64 // mean, its standard error, and the standard deviation of samples
	Independent  float64 // effective number of independent samples
	Time         float64 // integrated autocorrelation time in samples; the total number of samples is 2 Time Independent
	Shortest     float64 // number of samples of the shortest replica
	Drift        float64 // mean of the second half of the run minus that of the first
	Disagree     bool    // the replica means differ by more than chance
}

// Pool combines the series of independent replicas.
func Pool(replicas []Series) Estimate {
	var all moments
	var halves [2]moments
	e := Estimate{Shortest: math.Inf(1)}
	for i := range replicas {
		s := &replicas[i]
		all.merge(s.all)
		halves[0].merge(s.halves[0])
		halves[1].merge(s.halves[1])
		if s.Count() > 0 {
			e.Shortest = min(e.Shortest, float64(s.Count()))
		}
	}
	e.Mean, e.SD = all.mean, all.sd()
	if all.n == 0 {
		e.Mean = math.NaN()
	}
	count, within, between := variances(replicas, all)
	e.SE = math.Sqrt(max(within, between))
	e.Disagree = ExceedsChance(between/within*float64(count-1), count-1)
	e.Independent = e.SD * e.SD / (e.SE * e.SE)
	if e.SD == 0 && e.SE == 0 { // all values are equal
		e.Independent = float64(all.n)
	}
	e.Time = float64(all.n) / e.Independent / 2
	e.Drift = math.NaN()
	if halves[1].n > 0 {
		e.Drift = halves[1].mean - halves[0].mean
	}
	return e
}

// variances returns two estimates of the variance of the mean of all values, and the
// number of replicas that have values. within combines the errors within the replicas, Σ
// w² se², where w is the fraction of the values in a replica; it is NaN if one of the
// errors is unknown. between is the spread of the R replica means, R/(R-1) Σ w² (mean of
// the replica - mean)²: errors within a replica miss motions slower than the length of
// the replica. It is 0 for a single replica.
func variances(replicas []Series, all moments) (count int, within, between float64) {
	for i := range replicas {
		s := &replicas[i]
		if s.Count() == 0 {
			continue
		}
		count++
		share := float64(s.Count()) / float64(all.n)
		se, apart := share*s.StandardError(), share*(s.Mean()-all.mean)
		within += se * se
		between += apart * apart
	}
	switch count {
	case 0:
		return count, math.NaN(), 0
	case 1:
		return count, within, 0
	}
	return count, within, between * float64(count) / float64(count-1)
}

// ExceedsChance reports whether a chi-square exceeds the 99th percentile of its
// distribution, by the Wilson–Hilferty approximation: its cube root is nearly normal.
func ExceedsChance(chi2 float64, free int) bool {
	const normal99 = 2.326
	if free < 1 {
		return false
	}
	spread := 2 / (9 * float64(free))
	return math.Cbrt(chi2/float64(free)) > 1-spread+normal99*math.Sqrt(spread)
}

// Requirements for a converged mean.
const (
	MinIndependent          = 50 // independent samples over all replicas
	MinAutocorrelationTimes = 20 // length of each replica, in integrated autocorrelation times
)

// Converged reports whether the mean is reliable: there are MinIndependent samples, and
// it is steady.
func (e Estimate) Converged() bool { return e.Steady(MinIndependent) }

// Steady reports whether there are enough independent samples, each replica is long
// enough to show its slow motions, and the replicas and the halves of the run agree
// within their errors. The error of the difference of the halves is twice that of the
// mean.
func (e Estimate) Steady(independent float64) bool {
	return e.Independent >= independent && !(e.Shortest < MinAutocorrelationTimes*e.Time) && !e.Disagree && math.Abs(e.Drift) <= 3*math.Sqrt2*e.SE
}

// Widened returns the estimate with half the difference of the halves of the run added to
// its error in quadrature, for a run that is not converged.
func (e Estimate) Widened() Estimate {
	if !math.IsNaN(e.Drift) {
		e.SE = math.Hypot(e.SE, e.Drift/2)
	}
	return e
}
