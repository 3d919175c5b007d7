package md

import "math"

const (
	minBlocks    = 16  // least number of numbers for an error estimate
	leastLevel   = 32  // blocks of a level of blocking
	seriesBlocks = 512 // blocks that a series keeps at most
	windowLength = 6   // of the autocorrelation function, in integrated autocorrelation times
)

// Series summarises correlated numbers that arrive one by one. It keeps the means of equal blocks,
// not the numbers: when there are seriesBlocks of them, each two become one. A copy of a Series is
// independent of the original.
type Series struct {
	half   int64 // how many numbers belong to the first half of the run
	halves [2]moments
	every  moments // of all numbers

	size   int64   // numbers in a block
	open   moments // the block that is not full yet
	count  int64   // full blocks
	blocks [seriesBlocks]float64
}

// NewSeries returns a series that is going to have a number of samples, which
// says where its first half ends.
func NewSeries(samples int64) Series { return Series{half: samples / 2} }

// moments are sums over numbers: their count, their mean, and the sum of squared
// deviations from it.
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

// merge adds the numbers of another.
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

// sd is the standard deviation; NaN below two numbers.
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

// Add appends a number.
func (s *Series) Add(v float64) {
	part := 0
	if s.every.n >= s.half {
		part = 1
	}
	s.halves[part].add(v)
	s.every.add(v)
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

// halveBlocks makes one block of each two.
func (s *Series) halveBlocks() {
	s.count /= 2
	s.size *= 2
	for k := range s.count {
		s.blocks[k] = (s.blocks[2*k] + s.blocks[2*k+1]) / 2
	}
}

// Count returns how many numbers there are.
func (s *Series) Count() int64 { return s.every.n }

// Mean returns the mean of all numbers, 0 without any.
func (s *Series) Mean() float64 { return s.every.mean }

// StandardError returns the error of the mean, NaN for less than 16 numbers: the larger of two
// estimates. The sum of the autocorrelation function is right also for runs of ten autocorrelation
// times, but ends before a slow motion of small amplitude is seen; blocking sees that in long runs.
func (s *Series) StandardError() float64 {
	if s.count < minBlocks {
		return math.NaN()
	}
	values := s.blocks[:s.count]
	return math.Sqrt(max(correlatedVariance(values), blockedVariance(values)))
}

// correlatedVariance is the variance of the mean of correlated values: the sum of their
// autocovariances up to a window of windowLength times the integrated autocorrelation time (Sokal),
// corrected for the mean that is subtracted being that of the same values (U. Wolff, Computer
// Physics Communications 2004, 156, 143).
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

// blockedVariance is the variance of the mean of correlated values by blocking (Flyvbjerg and
// Petersen, J. Chem. Phys. 1989, 91, 461): the largest over the levels that have enough blocks.
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

// Archive stores or restores the sums.
func (s *Series) Archive(a *Archive) {
	for _, m := range []*moments{&s.halves[0], &s.halves[1], &s.every, &s.open} {
		m.archive(a)
	}
	a.Integer(&s.size)
	a.Integer(&s.count)
	for k := range max(0, min(s.count, seriesBlocks)) {
		a.Float(&s.blocks[k])
	}
}

// Estimate describes a mean. Unknown numbers are NaN.
type Estimate struct {
	Mean, SE, SD float64 // the mean, its standard error, and the standard deviation of single samples
	Independent  float64 // effective number of independent samples
	Time         float64 // integrated autocorrelation time in samples: their number is 2 Time Independent
	Shortest     float64 // samples of the shortest replica
	Drift        float64 // second half of the run minus the first
	Disagree     bool    // the means of the replicas differ by more than chance
}

// Pool combines the series of replicas, which are independent.
func Pool(replicas []Series) Estimate {
	var all moments
	var halves [2]moments
	e := Estimate{Shortest: math.Inf(1)}
	for i := range replicas {
		s := &replicas[i]
		all.merge(s.every)
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
	e.Disagree = BeyondChance(between/within*float64(count-1), count-1)
	e.Independent = e.SD * e.SD / (e.SE * e.SE)
	if e.SD == 0 && e.SE == 0 { // the same number again and again
		e.Independent = float64(all.n)
	}
	e.Time = float64(all.n) / e.Independent / 2
	e.Drift = math.NaN()
	if halves[1].n > 0 {
		e.Drift = halves[1].mean - halves[0].mean
	}
	return e
}

// variances are two estimates of that of the mean of all numbers, and the number of replicas that
// have some. One combines the errors within the replicas, Σ w² se², where w is the share of a replica
// in the numbers; it is NaN if one of them is unknown. The other one is the spread of their R means,
// R/(R-1) Σ w² (mean of the replica - mean)²: errors within a replica miss what is slower than the
// replica is long. It is 0 for a single replica.
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

// BeyondChance reports whether a chi-square is larger than 99 % of those that chance makes, by
// the approximation of Wilson and Hilferty: its cube root is nearly normal.
func BeyondChance(chi2 float64, free int) bool {
	const normal99 = 2.326
	if free < 1 {
		return false
	}
	spread := 2 / (9 * float64(free))
	return math.Cbrt(chi2/float64(free)) > 1-spread+normal99*math.Sqrt(spread)
}

// What a mean takes to be trusted.
const (
	LeastIndependent = 50 // samples, of all replicas
	LeastTimes       = 20 // length of each replica, in integrated autocorrelation times
)

// Converged reports whether the mean can be trusted: there are LeastIndependent samples, and it is steady.
func (e Estimate) Converged() bool { return e.Steady(LeastIndependent) }

// Steady reports whether there is a number of independent samples, each replica is long enough to
// show its slow motions, and the replicas and the halves of the run agree within their errors. The
// error of the difference of the halves is twice that of the mean.
func (e Estimate) Steady(independent float64) bool {
	return e.Independent >= independent && !(e.Shortest < LeastTimes*e.Time) && !e.Disagree && math.Abs(e.Drift) <= 3*math.Sqrt2*e.SE
}

// Widened is the estimate with an error that includes half the difference of the halves of the run,
// for a run that is not converged.
func (e Estimate) Widened() Estimate {
	if !math.IsNaN(e.Drift) {
		e.SE = math.Hypot(e.SE, e.Drift/2)
	}
	return e
}
