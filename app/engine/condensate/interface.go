package condensate

import (
	"math"

	"molrun/app/engine/md"
)

// Interface is the boundary of the dense phase on one side.
type Interface struct {
	Z     float64 // nm from the middle of the box: where the concentration is half way between the phases
	Width float64 // nm in which it goes from 10 to 90 % of the way
}

// widths is how many lengths of the hyperbolic tangent lie between 10 and 90 % of its way.
var widths = 2 * math.Atanh(0.8)

// curve is a step from one level to another, by the hyperbolic tangent: the form that mean
// field theory gives an interface.
type curve struct {
	at, length   float64 // nm
	inner, outer float64 // levels
	misfit       float64 // sum of squares
}

// fitCurve fits levels at growing distances from the middle of the dense phase, which are
// one step apart. Place and length are found on a grid that is refined again and again: the
// levels follow from them, and the misfit has several minima.
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

// stepAt finds the levels for a given place and length.
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
