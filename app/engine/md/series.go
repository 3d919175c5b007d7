package md

import "math"

// minBlocks is the least number of blocks for an error estimate.
const minBlocks = 16

// Series summarises correlated numbers that arrive one by one. It keeps the sums
// of every level of blocking (Flyvbjerg and Petersen, J. Chem. Phys. 1989, 91,
// 461), not the numbers. A copy of a Series is independent of the original.
type Series struct {
	half   int64 // how many numbers belong to the first half of the run
	halves [2]moments
	levels [40]level
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

// level holds averages of 2^k numbers.
type level struct {
	moments
	waiting float64 // an average without a partner yet, if n is odd
}

// Add appends a number.
func (s *Series) Add(v float64) {
	part := 0
	if s.levels[0].n >= s.half {
		part = 1
	}
	s.halves[part].add(v)
	for k := range s.levels {
		l := &s.levels[k]
		l.moments.add(v)
		if l.n%2 == 1 {
			l.waiting = v
			return
		}
		v = (l.waiting + v) / 2
	}
}

func (s *Series) all() moments { return s.levels[0].moments }

// Count returns how many numbers there are.
func (s *Series) Count() int64 { return s.levels[0].n }

// Mean returns the mean of all numbers, 0 without any.
func (s *Series) Mean() float64 { return s.levels[0].mean }

// StandardError returns the error of the mean: the largest over the levels that
// have enough blocks, NaN if none has.
func (s *Series) StandardError() float64 {
	largest := math.NaN()
	for _, l := range s.levels {
		if l.n < minBlocks {
			break
		}
		se := math.Sqrt(l.m2 / float64(l.n) / float64(l.n-1))
		if !(se <= largest) {
			largest = se
		}
	}
	return largest
}

// Archive stores or restores the sums.
func (s *Series) Archive(a *Archive) {
	for k := range s.halves {
		s.halves[k].archive(a)
	}
	for k := range s.levels {
		s.levels[k].moments.archive(a)
		a.Float(&s.levels[k].waiting)
	}
}

// Estimate describes a mean. Unknown numbers are NaN.
type Estimate struct {
	Mean, SE, SD float64 // the mean, its standard error, and the standard deviation of single samples
	Independent  float64 // effective number of independent samples
	Drift        float64 // second half of the run minus the first
}

// Pool combines the series of replicas, which are independent.
func Pool(replicas []Series) Estimate {
	var all moments
	var halves [2]moments
	for i := range replicas {
		s := &replicas[i]
		all.merge(s.all())
		halves[0].merge(s.halves[0])
		halves[1].merge(s.halves[1])
	}
	e := Estimate{Mean: all.mean, SE: pooledError(replicas, all), SD: all.sd()}
	if all.n == 0 {
		e.Mean = math.NaN()
	}
	e.Independent = math.Pow(e.SD/e.SE, 2)
	e.Drift = halves[1].mean - halves[0].mean
	return e
}

// pooledError is the error of the mean of all numbers: the larger of two estimates. One combines the
// errors within the replicas, sqrt(Σ w² se²), where w is the share of a replica in the numbers. The
// other one is the spread of their R means, sqrt(R/(R-1) Σ w² (mean of the replica - mean)²): blocking
// cannot see what is slower than a replica is long. NaN if the error within a replica is unknown.
func pooledError(replicas []Series, all moments) float64 {
	var count, within, between float64
	for i := range replicas {
		s := &replicas[i]
		if s.Count() == 0 {
			continue
		}
		count++
		share := float64(s.Count()) / float64(all.n)
		within += math.Pow(share*s.StandardError(), 2)
		between += math.Pow(share*(s.Mean()-all.mean), 2)
	}
	switch {
	case count == 0:
		return math.NaN()
	case count == 1:
		return math.Sqrt(within)
	}
	return math.Sqrt(max(within, between*count/(count-1)))
}

// LeastIndependent is how many independent samples a mean takes to be trusted.
const LeastIndependent = 50

// Converged reports whether the mean can be trusted: there are enough independent
// samples, and the halves of the run agree within their errors.
func (e Estimate) Converged() bool {
	return e.Independent >= LeastIndependent && math.Abs(e.Drift) < 3*math.Sqrt2*e.SE
}
