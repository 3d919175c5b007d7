package cgidp

import "math"

// minBlocks is how many blocks an error estimate needs at least.
const minBlocks = 16

// series summarises numbers that come one by one and are correlated. It keeps
// the sums of every level of blocking (Flyvbjerg and Petersen, J. Chem. Phys.
// 1989, 91, 461), not the numbers.
type series struct {
	half   int64 // how many numbers belong to the first half of the run
	halves [2]moments
	levels [40]level
}

// moments are sums over numbers: how many, their mean, and the sum of squared
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

// level holds averages of 2^k numbers.
type level struct {
	moments
	waiting float64 // an average without a partner yet, if n is odd
}

func (s *series) add(v float64) {
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

func (s *series) all() moments { return s.levels[0].moments }

// standardError of the mean is the largest over the levels that have enough
// blocks; NaN if none has.
func (s *series) standardError() float64 {
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

// estimate is what is known of a mean.
type estimate struct {
	mean, se, sd float64
	independent  float64 // effective number of independent samples
	drift        float64 // second half of the run minus the first
}

// pool combines the series of replicas, which are independent.
func pool(replicas []*series) estimate {
	var all moments
	var halves [2]moments
	squares := 0.0
	for _, s := range replicas {
		all.merge(s.all())
		halves[0].merge(s.halves[0])
		halves[1].merge(s.halves[1])
		se := s.standardError()
		squares += se * se
	}
	e := estimate{mean: all.mean, se: math.Sqrt(squares) / float64(len(replicas)), sd: all.sd()}
	if all.n == 0 {
		e.mean = math.NaN()
	}
	e.independent = math.Pow(e.sd/e.se, 2)
	e.drift = halves[1].mean - halves[0].mean
	return e
}

// converged tells whether a mean can be trusted: enough independent samples, and
// halves of the run that agree within their errors.
func (e estimate) converged() bool {
	return e.independent >= 50 && math.Abs(e.drift) < 3*math.Sqrt2*e.se
}
