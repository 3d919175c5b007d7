package binodal

import (
	"fmt"
	"math"
)

// Result is the result of a series.
type Result struct {
	Series  *Series
	Choices []Choice // one per point
	Law     *Law     // nil if the critical point is undetermined
	Reason  string   // why Law is nil, worded for biologists

	// Above is the highest temperature with a condensate and Below the lowest without
	// one, in K. For boxes of this size, the critical temperature lies between them. NaN
	// means unknown.
	Above, Below float64

	Warnings []string
}

// leastTemperatures is the minimum number of temperatures for a fit with two parameters.
const leastTemperatures = 3

// farShare is the ratio of extrapolation distance to temperature range above which an
// extrapolation counts as far. If unknown corrections to the law amount to a quarter
// where 1 - T/Tc is 1, they shift Tc by about a quarter of the extrapolation distance.
const farShare = 0.25

// Evaluate evaluates a series. Points that are not converged are used only if unconverged
// is true.
func Evaluate(s *Series, unconverged bool) *Result {
	v := &Result{Series: s, Choices: s.choose(unconverged), Above: math.NaN(), Below: math.NaN()}
	v.warnOfRuns()
	if s.Kind == OverIonicStrength {
		v.Reason = "No law predicts a critical ionic strength, so this series has concentrations and free energies but no critical point."
		return v
	}
	v.bracket(unconverged)
	v.fitLaw()
	return v
}

func (v *Result) warn(format string, args ...any) {
	v.Warnings = append(v.Warnings, fmt.Sprintf(format, args...))
}

// count returns the number of points used and how many of them are not converged.
func (v *Result) count() (used, unconverged int) {
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

// warnOfRuns warns of properties that make points hard to compare.
func (v *Result) warnOfRuns() {
	if used, doubtful := v.count(); doubtful > 0 {
		v.warn("%d of the %d points used are not converged: the results are unreliable", doubtful, used)
	}
	if text, differ := v.Series.differences(func(p *Point) string {
		return fmt.Sprintf("%d chains in %g x %g x %g nm", p.run.copies, p.run.box[0], p.run.box[1], p.run.box[2])
	}); differ {
		v.warn("the jobs have different boxes, which affect concentrations near the critical point: %s", text)
	}
}

// bracket finds the temperatures between which condensates vanish. Undecided runs are
// ignored, and only converged runs count as showing no condensate.
func (v *Result) bracket(unconverged bool) {
	for i := range v.Series.Points {
		p := &v.Series.Points[i]
		switch {
		case !p.isReliable(unconverged):
		case p.hasTwoPhases() && !(p.Temperature <= v.Above):
			v.Above = p.Temperature
		case p.isSinglePhase() && !(p.Temperature >= v.Below):
			v.Below = p.Temperature
		}
	}
	if v.Below <= v.Above {
		v.warn("there is no condensate at %g K but one at %g K: some runs are too short or their boxes too small", v.Below, v.Above)
		v.Below = math.NaN()
	}
}

// fitLaw fits the law to the points in use.
func (v *Result) fitLaw() {
	var pairs []fitPoint
	var jobs []string
	temperatures := map[float64]bool{}
	for i, c := range v.Choices {
		if c.Used {
			p := &v.Series.Points[i]
			dense, dilute := p.concentrations()
			pairs, jobs = append(pairs, fitPoint{p.Temperature, dense, dilute}), append(jobs, p.Job)
			temperatures[p.Temperature] = true
		}
	}
	if n := len(temperatures); n < leastTemperatures {
		v.Reason = fmt.Sprintf("A critical temperature requires the concentrations of both phases, with errors, at %d or more temperatures; there are %d. "+
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
		v.Reason = fmt.Sprintf("The error of the critical temperature exceeds the %g K spanned by the points: simulate longer, or closer to the temperature at which condensates vanish.", span)
		return
	}
	v.Law = l
	v.warnOfFit(jobs, span)
}

// extrapolated returns the distance of Tc above the highest temperature with a
// condensate, in K.
func (v *Result) extrapolated() float64 {
	if v.Law == nil {
		return math.NaN()
	}
	return v.Law.Tc.Mean - v.Above
}

// isFarExtrapolation reports whether Tc is a far extrapolation from the simulated temperatures.
func (v *Result) isFarExtrapolation() bool {
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

func (v *Result) warnOfFit(jobs []string, span float64) {
	l := v.Law
	if v.isFarExtrapolation() {
		v.warn("the critical temperature is %.3g K above the highest temperature with a condensate, a long extrapolation for points spanning %.3g K: "+
			"the law holds only near the critical point, and unknown corrections can shift the result by a quarter of this distance", v.extrapolated(), span)
	}
	free := float64(l.Free)
	if l.WidthScale > 1 {
		worst := 0
		for k, d := range l.Deviations {
			if math.Abs(d) > math.Abs(l.Deviations[worst]) {
				worst = k
			}
		}
		v.warn("the points deviate from the law by more than their errors (chi-square %.3g per degree of freedom; largest deviation: %s, %.2g standard errors); "+
			"the errors of Tc and of the width are inflated by a factor of %.2g", l.WidthChi2/free, jobs[worst], math.Abs(l.Deviations[worst]), l.WidthScale)
	}
	if l.DiameterScale > 1 {
		v.warn("the diameters do not lie on a line within their errors (chi-square %.3g per degree of freedom); "+
			"the errors of the slope and of the critical concentration are inflated", l.DiameterChi2/free)
	}
	if v.Below < l.Tc.Mean-2*l.Tc.SE {
		v.warn("there is no condensate at %g K, below the critical temperature: near Tc, a small slab dissolves", v.Below)
	}
	if l.Rhoc.Mean <= 0 {
		v.warn("the means of both phases extrapolate to a negative critical concentration, so it is left out")
		l.Rhoc = Concentration{math.NaN(), math.NaN()}
	}
}
