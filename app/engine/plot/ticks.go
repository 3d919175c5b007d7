package plot

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// mostTicks is the maximum number of ticks along an axis.
const mostTicks = 7

// roundTicks puts ticks at multiples of 1, 2 or 5 times a power of ten.
type roundTicks struct{}

// Ticks implements plot.Ticker.
func (roundTicks) Ticks(low, high float64) []plot.Tick {
	step, decimals := roundStep((high - low) / mostTicks)
	var ticks []plot.Tick
	const nearly = 1e-9 // keeps the end ticks despite rounding
	for k := int(math.Ceil(low/step - nearly)); float64(k) <= high/step+nearly; k++ {
		at := float64(k) * step
		ticks = append(ticks, plot.Tick{Value: at, Label: strconv.FormatFloat(at, 'f', decimals, 64)})
	}
	return ticks
}

// powerTicks puts ticks at powers of ten.
type powerTicks struct{}

// Ticks implements plot.Ticker.
func (powerTicks) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	const nearly = 1e-9
	for k := int(math.Ceil(math.Log10(low) - nearly)); float64(k) <= math.Log10(high)+nearly; k++ {
		at := math.Pow(10, float64(k))
		ticks = append(ticks, plot.Tick{Value: at, Label: strconv.FormatFloat(at, 'f', max(0, -k), 64)})
	}
	return ticks
}

// roundStep returns the smallest round number above a positive number, and the number of
// decimals of its multiples.
func roundStep(above float64) (step float64, decimals int) {
	power := math.Floor(math.Log10(above))
	for _, factor := range []float64{1, 2, 5, 10} {
		if step = factor * math.Pow(10, power); step > above {
			break
		}
	}
	return step, max(0, -int(math.Floor(math.Log10(step)+1e-9)))
}
