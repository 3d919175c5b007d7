package plot

import (
	"bytes"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	drawnPoints   = 500 // per replica
	histogramBins = 25
)

var (
	traceColor = color.NRGBA{R: 0x9d, G: 0xb4, B: 0xc8, A: 0xff}
	meanColor  = color.NRGBA{R: 0x1f, G: 0x4e, B: 0x79, A: 0xff}
	bandColor  = color.NRGBA{R: 0xe0, G: 0x8a, B: 0x1e, A: 0x70}
	restColor  = color.NRGBA{R: 0xe8, G: 0xe8, B: 0xe8, A: 0xff}
)

// Rg is the radius of gyration over a run.
type Rg struct {
	Title     string
	Replicas  int
	Steps     int64     // length of the run
	Discarded int64     // equilibration steps
	Curves    [][]Point // of the replicas so far, each non-empty
	Mean, SE  float64   // in nm, after equilibration; NaN if unknown
}

// Point is one sample.
type Point struct {
	Step float64
	Rg   float64 // nm
}

// SVG draws Rg against the step with its mean, and its histogram next to it. It needs at
// least one curve.
func (g *Rg) SVG() ([]byte, error) {
	curves := g.curves()
	course, err := g.course(curves)
	if err != nil {
		return nil, err
	}
	side, err := g.histogram(curves)
	if err != nil {
		return nil, err
	}
	side.Y.Min, side.Y.Max = course.Y.Min, course.Y.Max
	canvas := vgsvg.New(24*vg.Centimeter, 10*vg.Centimeter)
	whole := draw.New(canvas)
	split := 18 * vg.Centimeter
	course.Draw(draw.Crop(whole, 0, split-whole.Max.X, 0, 0))
	side.Draw(draw.Crop(whole, split+vg.Centimeter/2, -vg.Centimeter/4, 0, 0))
	var b bytes.Buffer
	_, err = canvas.WriteTo(&b)
	return b.Bytes(), err
}

// curves converts steps to millions.
func (g *Rg) curves() []plotter.XYs {
	curves := make([]plotter.XYs, len(g.Curves))
	for k, points := range g.Curves {
		for _, p := range points {
			curves[k] = append(curves[k], plotter.XY{X: p.Step / 1e6, Y: p.Rg})
		}
	}
	return curves
}

// allSteps returns the last step, in millions.
func (g *Rg) allSteps() float64 { return float64(g.Steps) / 1e6 }

// equilibrated returns the last equilibration step, in millions.
func (g *Rg) equilibrated() float64 { return float64(g.Discarded) / 1e6 }

func (g *Rg) course(curves []plotter.XYs) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = g.Title
	p.X.Label.Text = "million steps"
	p.Y.Label.Text = "radius of gyration / nm"
	p.X.Tick.Marker, p.Y.Tick.Marker = roundTicks{}, roundTicks{}
	p.Legend.Top, p.Legend.Padding = true, vg.Points(2)
	low, high := bounds(curves)
	if from := g.equilibrated(); from > 0 {
		if err := addArea(p, "equilibration, left out", box(0, from, low, high), restColor); err != nil {
			return nil, err
		}
	}
	if err := addLines(p, g.traceName(), curves, traceColor, vg.Points(0.6)); err != nil {
		return nil, err
	}
	if g.SE > 0 { // false if unknown
		band := box(g.equilibrated(), g.allSteps(), g.Mean-g.SE, g.Mean+g.SE)
		name := fmt.Sprintf("mean ± standard error: %.3f ± %.3f nm", g.Mean, g.SE)
		if err := addArea(p, name, band, bandColor); err != nil {
			return nil, err
		}
	}
	var means []plotter.XYs
	for _, curve := range curves {
		if mean := runningMean(curve, g.equilibrated()); len(mean) > 0 {
			means = append(means, mean)
		}
	}
	err := addLines(p, "running mean", means, meanColor, vg.Points(1.5))
	p.X.Min, p.X.Max = 0, g.allSteps()
	p.Y.Min, p.Y.Max = low, high+(high-low)/3 // space for the legend
	return p, err
}

func (g *Rg) traceName() string {
	if g.Replicas > 1 {
		return fmt.Sprintf("Rg of %d replicas", g.Replicas)
	}
	return "Rg"
}

// bounds returns the minimum and maximum Rg, widened if they are equal.
func bounds(curves []plotter.XYs) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, curve := range curves {
		for _, p := range curve {
			low, high = min(low, p.Y), max(high, p.Y)
		}
	}
	if low == high {
		return low - 0.1, high + 0.1
	}
	return low, high
}

// runningMean returns the running mean after step from.
func runningMean(curve plotter.XYs, from float64) plotter.XYs {
	var running plotter.XYs
	mean := 0.0
	for _, p := range curve {
		if p.X > from {
			mean += (p.Y - mean) / float64(len(running)+1)
			running = append(running, plotter.XY{X: p.X, Y: mean})
		}
	}
	return running
}

// thinned returns at most drawnPoints evenly spaced points of a curve.
func thinned(curve plotter.XYs) plotter.XYs {
	every := (len(curve) + drawnPoints - 1) / drawnPoints
	var kept plotter.XYs
	for k := every - 1; every > 0 && k < len(curve); k += every {
		kept = append(kept, curve[k])
	}
	return kept
}

func addArea(p *plot.Plot, name string, corners plotter.XYs, c color.Color) error {
	area, err := plotter.NewPolygon(corners)
	if err != nil {
		return err
	}
	area.Color, area.LineStyle.Width = c, 0
	p.Add(area)
	p.Legend.Add(name, area)
	return nil
}

func box(left, right, low, high float64) plotter.XYs {
	return plotter.XYs{{X: left, Y: low}, {X: right, Y: low}, {X: right, Y: high}, {X: left, Y: high}}
}

// addLines draws curves of one kind with one legend entry.
func addLines(p *plot.Plot, name string, curves []plotter.XYs, c color.Color, width vg.Length) error {
	for k, curve := range curves {
		line, err := plotter.NewLine(thinned(curve))
		if err != nil {
			return err
		}
		line.Color, line.Width = c, width
		p.Add(line)
		if k == 0 {
			p.Legend.Add(name, line)
		}
	}
	return nil
}

// histogram draws the histogram with Rg on the y axis, like the adjacent plot.
func (g *Rg) histogram(curves []plotter.XYs) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = " " // align with the other plot
	p.X.Label.Text = "density per nm"
	p.X.Tick.Marker, p.Y.Tick.Marker = roundTicks{}, plot.ConstantTicks(nil)
	var values plotter.Values
	for _, curve := range curves {
		for _, point := range curve {
			if point.X > g.equilibrated() {
				values = append(values, point.Y)
			}
		}
	}
	if len(values) == 0 {
		p.X.Min, p.X.Max = 0, 1
		return p, nil
	}
	histogram, err := plotter.NewHist(values, histogramBins)
	if err != nil {
		return nil, err
	}
	histogram.Normalize(1)
	for _, bin := range histogram.Bins {
		bar, err := plotter.NewPolygon(box(0, bin.Weight, bin.Min, bin.Max))
		if err != nil {
			return nil, err
		}
		bar.Color, bar.LineStyle.Width = traceColor, 0
		p.Add(bar)
	}
	p.X.Min = 0
	return p, nil
}
