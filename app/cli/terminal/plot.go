package terminal

import (
	"fmt"
	"math"
	"strings"
)

// Curve is the data of a plot.
type Curve struct {
	Name string
	X, Y []float64 // of equal length; points with NaN are skipped
}

// Each character of a plot is two dots wide and four dots high.
const (
	dotsAcross = 2
	dotsDown   = 4
)

// braille holds the bit of each dot of a character, by row and column.
var braille = [dotsDown][dotsAcross]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// Plot draws a curve, columns wide and rows high, with its range on both axes.
func Plot(c Curve, xLabel, yLabel string, columns, rows int) string {
	x0, x1, okX := bounds(c.X)
	y0, y1, okY := bounds(c.Y)
	if !okX || !okY {
		return Clean(c.Name) + ": no values to plot\n"
	}
	top, bottom := number(y1), number(y0)
	margin := max(len(top), len(bottom)) + 1
	wide, high := max(columns-margin-1, 10), max(rows, 4)
	grid := make([][]rune, high)
	for i := range grid {
		grid[i] = make([]rune, wide)
	}
	drawCurve(grid, c, x0, x1, y0, y1)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", strings.TrimSpace(Clean(c.Name+" "+yLabel)))
	for i, row := range grid {
		label := ""
		switch i {
		case 0:
			label = top
		case high - 1:
			label = bottom
		}
		fmt.Fprintf(&b, "%*s│%s\n", margin-1, label, strings.TrimRight(characters(row), " "))
	}
	fmt.Fprintf(&b, "%s└%s\n", strings.Repeat(" ", margin-1), strings.Repeat("─", wide))
	left, right := number(x0), number(x1)
	middle := Clean(xLabel)
	gap := max(wide-len(left)-len(right)-len([]rune(middle)), 2)
	fmt.Fprintf(&b, "%s%s%s%s%s%s\n", strings.Repeat(" ", margin), left, strings.Repeat(" ", gap/2), middle, strings.Repeat(" ", gap-gap/2), right)
	return b.String()
}

func characters(row []rune) string {
	var b strings.Builder
	for _, dots := range row {
		if dots == 0 {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(0x2800 + dots)
	}
	return b.String()
}

// drawCurve draws a curve, connecting adjacent points.
func drawCurve(grid [][]rune, c Curve, x0, x1, y0, y1 float64) {
	wide, high := len(grid[0])*dotsAcross-1, len(grid)*dotsDown-1
	lastX, lastY := -1, -1
	for i := range min(len(c.X), len(c.Y)) {
		if !finite(c.X[i]) || !finite(c.Y[i]) {
			lastX = -1
			continue
		}
		px, py := cellOf(c.X[i], x0, x1, wide), high-cellOf(c.Y[i], y0, y1, high)
		if lastX < 0 {
			lastX, lastY = px, py
		}
		steps := max(abs(px-lastX), abs(py-lastY), 1)
		for k := 0; k <= steps; k++ {
			x, y := lastX+(px-lastX)*k/steps, lastY+(py-lastY)*k/steps
			grid[y/dotsDown][x/dotsAcross] |= braille[y%dotsDown][x%dotsAcross]
		}
		lastX, lastY = px, py
	}
}

func cellOf(v, from, to float64, dots int) int {
	if to == from {
		return dots / 2
	}
	return int(math.Round((v/2 - from/2) / (to/2 - from/2) * float64(dots)))
}

func bounds(values []float64) (from, to float64, ok bool) {
	from, to = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if finite(v) {
			from, to = min(from, v), max(to, v)
		}
	}
	return from, to, from <= to
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func abs(n int) int { return max(n, -n) }

func number(v float64) string { return fmt.Sprintf("%.4g", v) }
