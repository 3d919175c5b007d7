package cgidp

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	drawnPoints   = 500 // of one replica
	histogramBins = 25
)

var (
	traceColor = color.NRGBA{R: 0x9d, G: 0xb4, B: 0xc8, A: 0xff}
	meanColor  = color.NRGBA{R: 0x1f, G: 0x4e, B: 0x79, A: 0xff}
	bandColor  = color.NRGBA{R: 0xe0, G: 0x8a, B: 0x1e, A: 0x70}
	restColor  = color.NRGBA{R: 0xe8, G: 0xe8, B: 0xe8, A: 0xff}
)

// rgCurve is Rg against the step, in millions, as in timeseries.csv.
func rgCurve(rows []byte) plotter.XYs {
	var curve plotter.XYs
	for line := range strings.Lines(string(rows)) {
		fields := strings.SplitN(line, ",", 5)
		if len(fields) < 5 {
			continue
		}
		step, _ := strconv.ParseFloat(fields[0], 64)
		rg, _ := strconv.ParseFloat(fields[3], 64)
		curve = append(curve, plotter.XY{X: step / 1e6, Y: rg})
	}
	return curve
}

// thinned keeps the last of every so many points.
func thinned(curve plotter.XYs) plotter.XYs {
	every := (len(curve) + drawnPoints - 1) / drawnPoints
	var kept plotter.XYs
	for k := every - 1; every > 0 && k < len(curve); k += every {
		kept = append(kept, curve[k])
	}
	return kept
}

// runningMean averages from the end of equilibration on.
func runningMean(curve plotter.XYs, from float64) plotter.XYs {
	var mean plotter.XYs
	var so moments
	for _, p := range curve {
		if p.X > from {
			so.add(p.Y)
			mean = append(mean, plotter.XY{X: p.X, Y: so.mean})
		}
	}
	return mean
}

// rgPlot is Rg against the step with its mean, and its histogram at the side. It
// is nil as long as there is nothing to show.
func (c *chain) rgPlot(res results) ([]byte, error) {
	var curves []plotter.XYs
	for _, r := range c.running() {
		r.Lock()
		curve := rgCurve(r.rows)
		r.Unlock()
		if len(curve) > 0 {
			curves = append(curves, curve)
		}
	}
	if len(curves) == 0 {
		return nil, nil
	}
	course, err := c.rgCourse(curves, res.rg)
	if err != nil {
		return nil, err
	}
	side, err := c.rgHistogram(curves)
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

// equilibrated is the step, in millions, from which on samples count.
func (c *chain) equilibrated() float64 { return float64(c.plan.discarded) / 1e6 }

func (c *chain) rgCourse(curves []plotter.XYs, rg estimate) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = c.Name
	p.X.Label.Text = "million steps"
	p.Y.Label.Text = "radius of gyration / nm"
	p.X.Tick.Marker, p.Y.Tick.Marker = roundTicks{}, roundTicks{}
	p.Legend.Top, p.Legend.Padding = true, vg.Points(2)
	low, high := reach(curves)
	if from := c.equilibrated(); from > 0 {
		if err := addArea(p, "equilibration, left out", box(0, from, low, high), restColor); err != nil {
			return nil, err
		}
	}
	if err := addLines(p, c.traceName(), curves, traceColor, vg.Points(0.6)); err != nil {
		return nil, err
	}
	if rg.se > 0 { // not so if unknown
		band := box(c.equilibrated(), c.allSteps(), rg.mean-rg.se, rg.mean+rg.se)
		name := fmt.Sprintf("mean ± standard error: %.3f ± %.3f nm", rg.mean, rg.se)
		if err := addArea(p, name, band, bandColor); err != nil {
			return nil, err
		}
	}
	var means []plotter.XYs
	for _, curve := range curves {
		if mean := runningMean(curve, c.equilibrated()); len(mean) > 0 {
			means = append(means, mean)
		}
	}
	err := addLines(p, "running mean", means, meanColor, vg.Points(1.5))
	p.X.Min, p.X.Max = 0, c.allSteps()
	p.Y.Min, p.Y.Max = low, high+(high-low)/3 // room for the legend
	return p, err
}

// allSteps is the last step, in millions.
func (c *chain) allSteps() float64 { return float64(c.plan.steps) / 1e6 }

func (c *chain) traceName() string {
	if n := len(c.replicas); n > 1 {
		return fmt.Sprintf("Rg of %d replicas", n)
	}
	return "Rg"
}

// reach is the least and the greatest Rg, apart from each other.
func reach(curves []plotter.XYs) (low, high float64) {
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

// addArea fills an area.
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

// addLines draws curves of one kind under one name.
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

// rgHistogram has Rg upwards, as the plot it stands beside.
func (c *chain) rgHistogram(curves []plotter.XYs) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = " " // as high as the other
	p.X.Label.Text = "density per nm"
	p.X.Tick.Marker, p.Y.Tick.Marker = roundTicks{}, plot.ConstantTicks(nil)
	var values plotter.Values
	for _, curve := range curves {
		for _, point := range curve {
			if point.X > c.equilibrated() {
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
