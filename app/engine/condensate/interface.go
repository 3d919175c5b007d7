package condensate

import (
	"math"

	"molrun/app/engine/md"
)

// Interface is the boundary of the dense phase on one side.
type Interface struct {
	Z     float64 // nm from the box center, where the concentration is halfway between the phases
	Width float64 // nm, over which the profile rises from 10 to 90 %
}

// widths is the 10–90 % width of a hyperbolic tangent in units of its length parameter.
var widths = 2 * math.Atanh(0.8)

// curve is a step between two levels in the form of a hyperbolic tangent, the interface
// profile of mean-field theory.
type curve struct {
	at, length   float64 // nm
	inner, outer float64 // levels
	misfit       float64 // sum of squares
}

// fitCurve fits a step to levels at increasing distance from the center of the dense
// phase, spaced by step. Position and length are found by repeated grid refinement,
// because the misfit has several minima. The two levels follow by linear regression.
func fitCurve(step float64, levels []float64) curve {
	reach := step * float64(len(levels))
	best := curve{misfit: math.Inf(1)}
	low, high := [2]float64{0, math.Log(step / 2)}, [2]float64{reach, math.Log(reach / 2)}
	for range 12 {
		const points = 16
		middle := [2]float64{best.at, math.Log(best.length)}
		for i := range points + 1 {
			for k := range points + 1 {
				at := low[0] + (high[0]-low[0])*float64(i)/points
				logLength := low[1] + (high[1]-low[1])*float64(k)/points
				if c := stepAt(step, levels, at, md.Exp(logLength)); c.misfit < best.misfit {
					best, middle = c, [2]float64{at, logLength}
				}
			}
		}
		for d := range 2 {
			reach := (high[d] - low[d]) / 5
			low[d], high[d] = max(low[d], middle[d]-reach), min(high[d], middle[d]+reach)
		}
	}
	return best
}

// stepAt returns the best fit for a given position and length.
func stepAt(step float64, levels []float64, at, length float64) curve {
	n := float64(len(levels))
	var t, tt, c, tc, cc float64
	for i, level := range levels {
		x := 2/(md.Exp(2*((float64(i)+0.5)*step-at)/length)+1) - 1 // -tanh
		t += x
		tt += x * x
		c += level
		tc += x * level
		cc += level * level
	}
	f := curve{at: at, length: length}
	slope := 0.0
	if spread := tt - t*t/n; spread > 1e-9 {
		slope = (tc - t*c/n) / spread
	}
	mean := (c - slope*t) / n
	f.inner, f.outer = mean+slope, mean-slope
	f.misfit = cc - mean*c - slope*tc
	return f
}
