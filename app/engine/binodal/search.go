package binodal

import "math"

// bestWidth returns the width that fits best for a given Tc, and its chi-square. The law
// is linear in the width.
func bestWidth(pairs []fitPoint, tc float64) (width, chi2 float64) {
	var up, down float64
	for _, q := range pairs {
		d := q.difference()
		part, _ := reducedWidth(q.temperature, tc)
		up += d.Mean * part / square(d.SE)
		down += part * part / square(d.SE)
	}
	width = up / down
	for _, q := range pairs {
		d := q.difference()
		part, _ := reducedWidth(q.temperature, tc)
		chi2 += square((d.Mean - width*part) / d.SE)
	}
	return width, chi2
}

// Search range of Tc, as its distance above the highest temperature with a condensate in
// multiples of that temperature, and the number of logarithmic steps.
const (
	nearest  = 1e-6
	farthest = 10
	steps    = 300
)

// findTc returns the best-fitting Tc above the given temperature, by a grid search
// followed by golden-section search. If the minimum is at an end of the range, there is
// no Tc, and reason says what that means.
func findTc(pairs []fitPoint, above float64) (tc float64, reason string) {
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

// golden returns the position of the minimum of f between from and to, to a billionth of
// the interval.
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
