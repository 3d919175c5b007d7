package binodal

import "math"

// bestWidth is the width that fits best with a Tc, and its chi-square: the law is linear in it.
func bestWidth(pairs []phasePair, tc float64) (width, chi2 float64) {
	var up, down float64
	for _, q := range pairs {
		d := q.difference()
		part, _ := shape(q.temperature, tc)
		up += d.Mean * part / square(d.SE)
		down += part * part / square(d.SE)
	}
	width = up / down
	for _, q := range pairs {
		d := q.difference()
		part, _ := shape(q.temperature, tc)
		chi2 += square((d.Mean - width*part) / d.SE)
	}
	return width, chi2
}

// Tc is looked for from a millionth of the highest temperature of a condensate above it up to
// ten times that temperature, in steps of a constant factor.
const (
	nearest  = 1e-6
	farthest = 10
	steps    = 300
)

// findTc finds the Tc above a temperature that fits best, by trying and then by golden section.
// If that is an end of what is tried, there is none; reason says what that means.
func findTc(pairs []phasePair, above float64) (tc float64, reason string) {
	low, high := math.Log(nearest*above), math.Log(farthest*above)
	chi := func(u float64) float64 {
		_, chi2 := bestWidth(pairs, above+math.Exp(u))
		return chi2
	}
	at := func(k int) float64 { return low + (high-low)*float64(k)/steps }
	best, least := 0, math.Inf(1)
	for k := range steps + 1 {
		if chi2 := chi(at(k)); chi2 < least {
			best, least = k, chi2
		}
	}
	switch best {
	case 0:
		return 0, "The phases differ too much at the highest temperature with a condensate for any critical temperature above it: " +
			"the points do not follow the law, or one of them is wrong."
	case steps:
		return 0, "The phases do not become more alike towards higher temperatures, so the points do not say where they would be equal."
	}
	return above + math.Exp(golden(chi, at(best-1), at(best+1))), ""
}

// golden finds the minimum of a function between two places, to a billionth of the way between them.
func golden(f func(float64) float64, from, to float64) float64 {
	const rounds = 60
	ratio := (math.Sqrt(5) - 1) / 2
	left, right := to-ratio*(to-from), from+ratio*(to-from)
	atLeft, atRight := f(left), f(right)
	for range rounds {
		if atLeft < atRight {
			to, right, atRight = right, left, atLeft
			left = to - ratio*(to-from)
			atLeft = f(left)
		} else {
			from, left, atLeft = left, right, atRight
			right = from + ratio*(to-from)
			atRight = f(right)
		}
	}
	return (from + to) / 2
}
