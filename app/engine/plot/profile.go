package plot

import (
	"bytes"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// curveColors distinguish curves, also for color-blind readers (Okabe and Ito).
var curveColors = []color.Color{
	color.NRGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
	color.NRGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
	color.NRGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
	color.NRGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	color.NRGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff},
	color.NRGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff},
	color.NRGBA{R: 0x00, G: 0x00, B: 0x00, A: 0xff},
	color.NRGBA{R: 0x99, G: 0x99, B: 0x99, A: 0xff},
}

// Profile is a plot of concentrations along the long edge of a box.
type Profile struct {
	Title  string
	Curves []Curve
	Edges  []float64 // nm, boundaries of the phases
}

// Curve is the concentration of one component.
type Curve struct {
	Name  string
	Z     []float64 // nm
	Level []float64 // mg/mL
}

// SVG draws the concentrations on a logarithmic scale, so that a dilute phase is visible
// next to a dense one. Zero concentrations are not drawn.
func (f *Profile) SVG() ([]byte, error) {
	p := plot.New()
	p.Title.Text = f.Title
	p.X.Label.Text, p.Y.Label.Text = "z / nm", "concentration / mg/mL"
	p.X.Tick.Marker = roundTicks{}
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, powerTicks{}
	p.Legend.Top, p.Legend.Padding = true, vg.Points(2)
	least, most := f.bounds()
	for k, c := range f.Curves {
		if err := f.drawCurve(p, k, c, least); err != nil {
			return nil, err
		}
	}
	for _, z := range f.Edges {
		edge, err := plotter.NewLine(plotter.XYs{{X: z, Y: least}, {X: z, Y: most}})
		if err != nil {
			return nil, err
		}
		edge.Dashes = []vg.Length{vg.Points(3), vg.Points(3)}
		edge.Color = traceColor
		p.Add(edge)
	}
	p.Y.Min, p.Y.Max = least, most*3 // space for the legend
	canvas := vgsvg.New(20*vg.Centimeter, 10*vg.Centimeter)
	p.Draw(draw.New(canvas))
	var b bytes.Buffer
	_, err := canvas.WriteTo(&b)
	return b.Bytes(), err
}

// bounds returns the powers of ten that enclose the nonzero concentrations.
func (f *Profile) bounds() (least, most float64) {
	least, most = math.Inf(1), 0
	for _, c := range f.Curves {
		for _, level := range c.Level {
			if level > 0 {
				least, most = min(least, level), max(most, level)
			}
		}
	}
	if most == 0 {
		return 1, 10
	}
	least = math.Pow(10, math.Floor(math.Log10(least)))
	return least, max(most, 10*least)
}

// drawCurve draws a curve in pieces, interrupted where the concentration is zero.
func (f *Profile) drawCurve(p *plot.Plot, k int, c Curve, least float64) error {
	shown := curveColors[k%len(curveColors)]
	var piece plotter.XYs
	named := false
	finish := func() error {
		if len(piece) == 0 {
			return nil
		}
		line, err := plotter.NewLine(piece)
		if err != nil {
			return err
		}
		line.Color, line.Width = shown, vg.Points(1.5)
		p.Add(line)
		if !named {
			p.Legend.Add(c.Name, line)
		}
		named, piece = true, nil
		return nil
	}
	for i, level := range c.Level {
		if level >= least {
			piece = append(piece, plotter.XY{X: c.Z[i], Y: level})
			continue
		}
		if err := finish(); err != nil {
			return err
		}
	}
	return finish()
}
