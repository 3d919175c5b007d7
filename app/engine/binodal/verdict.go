package binodal

import (
	"fmt"
	"math"
)

// Verdict is what a series says.
type Verdict struct {
	Series  *Series
	Choices []Choice // by point
	Law     *Law     // nil if no critical point is determined
	Reason  string   // why there is none, in words for a biologist

	// Condensates were seen up to Above, in K, and none at Below: in boxes of this size, the
	// critical temperature is between. NaN is unknown.
	Above, Below float64

	Warnings []string
}

// A fit needs this number of temperatures, of which two are for its parameters.
const leastTemperatures = 3

// farShare is the part of the range of temperatures beyond which a Tc above it is far. Unknown
// corrections of the law by a quarter, at the distance where 1 - T/Tc is 1, move Tc by about
// a quarter of how far it is away.
const farShare = 0.25

// Evaluate finds what a series says; points that are not converged count if unconverged.
func Evaluate(s *Series, unconverged bool) *Verdict {
	v := &Verdict{Series: s, Choices: s.choose(unconverged), Above: math.NaN(), Below: math.NaN()}
	v.warnOfRuns()
	if s.Kind == OverIonicStrength {
		v.Reason = "Over ionic strength there is no law that says where the phases become equal: there are concentrations and free energies, and no critical point."
		return v
	}
	v.bracket(unconverged)
	v.fitLaw()
	return v
}

// warn adds a warning.
func (v *Verdict) warn(format string, args ...any) {
	v.Warnings = append(v.Warnings, fmt.Sprintf(format, args...))
}

// count is how many points are used and, of these, not converged.
func (v *Verdict) count() (used, unconverged int) {
	for i, c := range v.Choices {
		if c.Used {
			used++
			if !v.Series.Points[i].Converged {
				unconverged++
			}
		}
	}
	return used, unconverged
}

// warnOfRuns says what makes points hard to compare.
func (v *Verdict) warnOfRuns() {
	if used, doubtful := v.count(); doubtful > 0 {
		v.warn("%d of the %d points that are used are not converged: do not rely on the results", doubtful, used)
	}
	if text, differ := v.Series.differences(func(p *Point) string {
		return fmt.Sprintf("%d chains in %g x %g x %g nm", p.run.copies, p.run.box[0], p.run.box[1], p.run.box[2])
	}); differ {
		v.warn("the jobs differ in their boxes, on which concentrations near the critical point depend: %s", text)
	}
}

// bracket finds between which temperatures condensates vanish. Runs that do not tell whether the chains
// condense bound nothing, and only converged ones show that they do not.
func (v *Verdict) bracket(unconverged bool) {
	for i := range v.Series.Points {
		p := &v.Series.Points[i]
		switch {
		case !p.counts(unconverged):
		case p.condensed() && !(p.Temperature <= v.Above):
			v.Above = p.Temperature
		case p.dissolved() && !(p.Temperature >= v.Below):
			v.Below = p.Temperature
		}
	}
	if v.Below <= v.Above {
		v.warn("there is no condensate at %g K, and one at %g K: some runs are too short or their boxes too small to tell", v.Below, v.Above)
		v.Below = math.NaN()
	}
}

// fitLaw fits the law to the points that are used.
func (v *Verdict) fitLaw() {
	var pairs []phasePair
	var jobs []string
	temperatures := map[float64]bool{}
	for i, c := range v.Choices {
		if c.Used {
			p := &v.Series.Points[i]
			dense, dilute := p.levels()
			pairs, jobs = append(pairs, phasePair{p.Temperature, dense, dilute}), append(jobs, p.Job)
			temperatures[p.Temperature] = true
		}
	}
	if n := len(temperatures); n < leastTemperatures {
		v.Reason = fmt.Sprintf("A critical temperature takes the concentrations of both phases, with errors, at %d temperatures or more; here are %d. "+
			"The table says why points are not used.", leastTemperatures, n)
		return
	}
	span := pairs[len(pairs)-1].temperature - pairs[0].temperature
	l, reason := fitLaw(pairs, v.Above)
	if l == nil {
		v.Reason = reason
		return
	}
	if !(l.Tc.SE <= span) {
		v.Reason = fmt.Sprintf("The points leave the critical temperature open by more than the %g K that they span: simulate longer, or closer to where condensates vanish.", span)
		return
	}
	v.Law = l
	v.warnOfFit(jobs, span)
}

// extrapolated is how far Tc is above the highest temperature with a condensate, in K.
func (v *Verdict) extrapolated() float64 {
	if v.Law == nil {
		return math.NaN()
	}
	return v.Law.Tc.Mean - v.Above
}

// far reports whether Tc is far from what was simulated.
func (v *Verdict) far() bool {
	points := v.Series.Points
	lowest := math.NaN()
	for i, c := range v.Choices {
		if c.Used {
			lowest = points[i].Temperature
			break
		}
	}
	return v.extrapolated() > farShare*(v.Above-lowest)
}

func (v *Verdict) warnOfFit(jobs []string, span float64) {
	l := v.Law
	if v.far() {
		v.warn("the critical temperature is %.3g K above the highest temperature with a condensate, far for points that span %.3g K: "+
			"the law holds near the critical point only, and what is unknown of it may move the result by a quarter of this", v.extrapolated(), span)
	}
	free := float64(l.Free)
	if l.WidthScale > 1 {
		worst := 0
		for k, d := range l.Deviations {
			if math.Abs(d) > math.Abs(l.Deviations[worst]) {
				worst = k
			}
		}
		v.warn("the points deviate from the law by more than their errors (chi-square %.3g per degree of freedom, most of all %s by %.2g errors); "+
			"the errors of Tc and of the width are made %.2g times as large", l.WidthChi2/free, jobs[worst], math.Abs(l.Deviations[worst]), l.WidthScale)
	}
	if l.DiameterScale > 1 {
		v.warn("the means of both phases are not on a line within their errors (chi-square %.3g per degree of freedom); "+
			"the errors of its slope and of the critical concentration are made larger", l.DiameterChi2/free)
	}
	if v.Below < l.Tc.Mean-2*l.Tc.SE {
		v.warn("there is no condensate at %g K, below the critical temperature: near it, a small slab does not last", v.Below)
	}
	if l.Rhoc.Mean <= 0 {
		v.warn("the means of both phases extrapolate to a negative critical concentration, so it is left out")
		l.Rhoc = Level{math.NaN(), math.NaN()}
	}
}
