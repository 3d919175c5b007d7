package binodal

import (
	"fmt"
	"math"
)

// Choice says whether a point counts in a fit, and why not or with what reserve.
type Choice struct {
	Used bool
	Note string // "" if there is nothing to say
}

// choose decides about each point of a series. Nothing unknown is taken for a number: a dilute
// phase that has only an upper bound is anywhere between 0 and the bound, with equal
// probability.
func (s *Series) choose(unconverged bool) []Choice {
	all := make([]Choice, len(s.Points))
	for i := range s.Points {
		p := &s.Points[i]
		switch first := s.sameRun(i); {
		case first != "":
			all[i].Note = "the same run as " + first + ", which counts once"
		case p.Condensed == nil:
			all[i].Note = "not known whether it condenses"
			if p.Reason != "" {
				all[i].Note += ": " + p.Reason
			}
		case !p.counts(unconverged):
			all[i].Note = "not converged: take more steps or replicas"
		case p.dissolved():
			all[i].Note = "did not condense"
		default:
			all[i] = chooseCondensed(p)
		}
	}
	return all
}

func chooseCondensed(p *Point) Choice {
	dense, dilute := p.levels()
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
		return Choice{Note: "its dilute phase is no thinner than its dense one"}
	}
	c := Choice{Used: true}
	if math.IsNaN(p.Dilute.Mean) {
		c.Note = fmt.Sprintf("the dilute phase has only a bound: taken as anywhere from 0 to %.3g mg/mL", p.Below)
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

// levels are the concentrations of the phases as a fit takes them. A number that is evenly
// distributed from 0 to a bound has a standard deviation of the bound by the root of 12.
func (p *Point) levels() (dense, dilute Level) {
	dilute = p.Dilute
	if math.IsNaN(dilute.Mean) && p.Below > 0 {
		dilute = Level{p.Below / 2, p.Below / math.Sqrt(12)}
	}
	return p.Dense, dilute
}

// sameRun names the point before one that is the same simulation, as after a second submission
// under another name; "" if there is none.
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
