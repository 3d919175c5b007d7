package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
)

// point is a cost measured with a given number of jobs.
type point struct{ jobs, cost float64 }

// Geometry of the chart, in pixels.
const (
	plotLeft, plotTop     = 84, 20
	plotWidth, plotHeight = 520, 460
	legendWidth           = 260
)

// colors are distinguishable for most people with color blindness.
var colors = []string{
	"#0072b2", "#56b4e9", "#009e73", "#d55e00", "#e69f00", "#cc79a7",
	"#000000", "#7f7f7f", "#6a3d9a", "#b15928", "#33a02c",
}

// axis maps values to positions on a logarithmic scale.
type axis struct{ low, high, from, to float64 }

func (a axis) at(v float64) float64 {
	return a.from + (math.Log10(v)-a.low)/(a.high-a.low)*(a.to-a.from)
}

// spanning returns an axis that runs from one power of ten to another and covers all
// values.
func spanning(series [][]point, of func(point) float64, from, to float64) axis {
	a := axis{low: math.Inf(1), high: math.Inf(-1), from: from, to: to}
	for _, points := range series {
		for _, p := range points {
			if v := of(p); v > 0 {
				a.low = min(a.low, math.Floor(math.Log10(v)))
				a.high = max(a.high, math.Ceil(math.Log10(v)))
			}
		}
	}
	if a.low >= a.high { // at most one distinct value
		a.low, a.high = min(a.low, 0), min(a.low, 0)+1
	}
	return a
}

// drawChart returns an SVG of costs against the number of jobs, both axes logarithmic. A
// cost that does not depend on the number of jobs is a flat line.
func drawChart(names []string, series [][]point) []byte {
	x := spanning(series, func(p point) float64 { return p.jobs }, plotLeft, plotLeft+plotWidth)
	y := spanning(series, func(p point) float64 { return p.cost }, plotTop+plotHeight, plotTop)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n",
		plotLeft+plotWidth+legendWidth, plotTop+plotHeight+50)
	fmt.Fprintln(&b, `<rect width="100%" height="100%" fill="white"/>`)
	drawGrid(&b, x, y)
	for i, points := range series {
		color := colors[i%len(colors)]
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="2" points="`, color)
		for _, p := range points {
			if p.cost > 0 {
				fmt.Fprintf(&b, "%.1f,%.1f ", x.at(p.jobs), y.at(p.cost))
			}
		}
		fmt.Fprintln(&b, `"/>`)
		at := plotTop + 14 + 20*i
		fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%[2]d" stroke="%[4]s" stroke-width="2"/><text x="%[5]d" y="%[6]d">%[7]s</text>`+"\n",
			plotLeft+plotWidth+14, at-4, plotLeft+plotWidth+34, color, plotLeft+plotWidth+40, at, html.EscapeString(names[i]))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">jobs in the database</text>`+"\n</svg>\n", plotLeft+plotWidth/2, plotTop+plotHeight+42)
	return b.Bytes()
}

func drawGrid(b *bytes.Buffer, x, y axis) {
	for e := x.low; e <= x.high; e++ {
		at := x.at(math.Pow(10, e))
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%[1]f" y2="%[3]d" stroke="#ddd"/><text x="%[1]f" y="%[4]d" text-anchor="middle">%[5]s</text>`+"\n",
			at, plotTop, plotTop+plotHeight, plotTop+plotHeight+20, power(e))
	}
	for e := y.low; e <= y.high; e++ {
		at := y.at(math.Pow(10, e))
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%[3]d" y2="%[2]f" stroke="#ddd"/><text x="%[4]d" y="%[5]f" text-anchor="end">%[6]s</text>`+"\n",
			plotLeft, at, plotLeft+plotWidth, plotLeft-8, at+4, power(e))
	}
}

// power formats a power of ten, with a thousands separator.
func power(e float64) string {
	if e < 0 {
		return fmt.Sprintf("%.*f", int(-e), math.Pow(10, e))
	}
	text := fmt.Sprintf("%.0f", math.Pow(10, e))
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
