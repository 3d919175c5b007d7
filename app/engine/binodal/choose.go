package binodal

import (
	"fmt"
	"math"
)

// Choice states whether a point is used in the fit, with a note on why not or on any
// caveat.
type Choice struct {
	Used bool
	Note string // "" if there is no caveat
}

// choose decides which points of a series are used. Missing values are never treated as
// numbers. If the dilute phase has only an upper bound, its concentration is treated as
// uniformly distributed between 0 and the bound.
func (s *Series) choose(unconverged bool) []Choice {
	all := make([]Choice, len(s.Points))
	for i := range s.Points {
		p := &s.Points[i]
		switch first := s.sameRun(i); {
		case first != "":
			all[i].Note = "same run as " + first + "; used once"
		case p.Condensed == nil:
			all[i].Note = "condensation undecided"
			if p.Reason != "" {
				all[i].Note += ": " + p.Reason
			}
		case !p.isReliable(unconverged):
			all[i].Note = "not converged: run more steps or replicas"
		case p.isSinglePhase():
			all[i].Note = "did not condense"
		default:
			all[i] = chooseCondensed(p)
		}
	}
	return all
}

func chooseCondensed(p *Point) Choice {
	dense, dilute := p.concentrations()
	switch {
	case !(dense.Mean > 0) || math.IsInf(dense.Mean, 0):
		return Choice{Note: "the concentration of its dense phase is unknown"}
	case !positive(dense.SE):
		return Choice{Note: "the error of its dense phase is unknown"}
	case !(dilute.Mean >= 0):
		return Choice{Note: "the concentration of its dilute phase is unknown"}
	case !positive(dilute.SE):
		return Choice{Note: "the error of its dilute phase is unknown"}
	case dilute.Mean >= dense.Mean:
		return Choice{Note: "its dilute phase is not less concentrated than its dense phase"}
	}
	c := Choice{Used: true}
	if math.IsNaN(p.Dilute.Mean) {
		c.Note = fmt.Sprintf("the dilute phase has only an upper bound: treated as uniform from 0 to %.3g mg/mL", p.Below)
	}
	if !p.Converged {
		c.Note = joined(c.Note, "used though not converged")
	}
	return c
}

func positive(v float64) bool { return v > 0 && !math.IsInf(v, 0) }

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// concentrations returns the concentrations of the phases as used in the fit. A uniform
// distribution from 0 to a bound has a standard deviation of bound/√12.
func (p *Point) concentrations() (dense, dilute Concentration) {
	dilute = p.Dilute
	if math.IsNaN(dilute.Mean) && p.Below > 0 {
		dilute = Concentration{p.Below / 2, p.Below / math.Sqrt(12)}
	}
	return p.Dense, dilute
}

// sameRun returns the job of an earlier point that is the same simulation (for example
// submitted twice under different names), or "" if there is none.
func (s *Series) sameRun(i int) string {
	p := &s.Points[i]
	for k := range s.Points[:i] {
		q := &s.Points[k]
		if q.run == p.run && q.Temperature == p.Temperature && q.IonicStrength == p.IonicStrength {
			return q.Job
		}
	}
	return ""
}
