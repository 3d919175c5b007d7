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

// Binodal is a phase diagram: concentrations of coexisting phases on the x axis, and the
// variable on which they depend on the y axis. Unknown values are NaN and are not drawn.
type Binodal struct {
	Title    string
	Axis     string // label of the y axis, with unit
	Points   []Coexistence
	Law      []LawPoint // in ascending order; can be empty
	Critical *Critical  // nil if there is none
}

// Bar is a value with its standard error.
type Bar struct{ Mean, SE float64 }

// Coexistence is the result of one simulation.
type Coexistence struct {
	At            float64 // K or mol/L
	Used          bool    // used in the fit
	Dense, Dilute Bar     // mg/mL
	Below         float64 // mg/mL, upper bound on an unknown dilute concentration
	Overall       float64 // mg/mL, in the whole box, if two phases were not found
	Undecided     bool    // it is unknown whether there are two phases
	Transfer      Bar     // kT
	TransferBelow float64 // kT, upper bound on an unknown free energy
}

// LawPoint is a point on the curve of a law, in mg/mL.
type LawPoint struct{ At, Dense, Dilute float64 }

// Critical is the critical point.
type Critical struct {
	At      Bar // K
	Density Bar // mg/mL
}

// Colors of the phases, distinguishable by color-blind readers.
var (
	denseColor    = curveColors[0]
	diluteColor   = curveColors[1]
	criticalColor = curveColors[6]
	unusedColor   = curveColors[7]
)

// SVG draws the concentrations and, next to them, the free energy of transfer.
func (f *Binodal) SVG() ([]byte, error) {
	left, err := f.densities()
	if err != nil {
		return nil, err
	}
	right, err := f.energies()
	if err != nil {
		return nil, err
	}
	low, high := f.extent()
	left.Y.Min, left.Y.Max, right.Y.Min, right.Y.Max = low, high, low, high
	canvas := vgsvg.New(24*vg.Centimeter, 11*vg.Centimeter)
	whole := draw.New(canvas)
	split := 16 * vg.Centimeter
	left.Draw(draw.Crop(whole, 0, split-whole.Max.X, 0, 0))
	right.Draw(draw.Crop(whole, split+vg.Centimeter/2, -vg.Centimeter/4, 0, 0))
	var b bytes.Buffer
	_, err = canvas.WriteTo(&b)
	return b.Bytes(), err
}

// extent returns the range of the y axis, with a margin.
func (f *Binodal) extent() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, p := range f.Points {
		low, high = min(low, p.At), max(high, p.At)
	}
	if c := f.Critical; c != nil {
		high = max(high, c.At.Mean+c.At.SE)
	}
	margin := (high - low) / 12
	if margin == 0 {
		margin = max(math.Abs(low)/100, 1e-3)
	}
	if f.Critical == nil {
		return low - margin, high + 5*margin // space for the legend
	}
	return low - margin, high + margin
}

func (f *Binodal) densities() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = f.Title
	p.X.Label.Text, p.Y.Label.Text = "concentration / mg/mL", f.Axis
	p.X.Tick.Marker, p.Y.Tick.Marker = roundTicks{}, roundTicks{}
	most := 0.0
	reach := func(v float64) {
		if !math.IsNaN(v) {
			most = max(most, v)
		}
	}
	m := marks{p: p}
	m.law(f.Law)
	for _, c := range f.Points {
		m.bar("dense phase", c.Dense, c.At, shade(denseColor, c.Used), draw.CircleGlyph{})
		m.bar("dilute phase", c.Dilute, c.At, shade(diluteColor, c.Used), draw.CircleGlyph{})
		m.upTo("dilute phase, below a bound", 0, c.Below, c.At, shade(diluteColor, c.Used))
		if c.Undecided {
			m.bar("phases unknown", Bar{c.Overall, math.NaN()}, c.At, criticalColor, draw.RingGlyph{})
		} else {
			m.bar("one phase", Bar{c.Overall, math.NaN()}, c.At, criticalColor, draw.CrossGlyph{})
		}
		for _, v := range []float64{c.Dense.Mean + c.Dense.SE, c.Dense.Mean, c.Below, c.Overall} {
			reach(v)
		}
	}
	if c := f.Critical; c != nil {
		m.bar("critical point", c.Density, c.At.Mean, criticalColor, draw.PyramidGlyph{})
		m.line(c.Density.Mean, c.At.Mean-c.At.SE, c.Density.Mean, c.At.Mean+c.At.SE, criticalColor)
		reach(c.Density.Mean + c.Density.SE)
	}
	if most == 0 {
		most = 1
	}
	p.X.Min, p.X.Max = 0, most*1.05
	p.Legend.Top, p.Legend.Padding = true, vg.Points(2)
	return p, m.err
}

func (f *Binodal) energies() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = " " // align with the other plot
	p.X.Label.Text = "transfer / kT"
	p.X.Tick.Marker, p.Y.Tick.Marker = roundTicks{}, roundTicks{}
	least := -1.0
	m := marks{p: p}
	for _, c := range f.Points {
		m.bar("", c.Transfer, c.At, shade(criticalColor, c.Used), draw.CircleGlyph{})
		for _, v := range []float64{c.Transfer.Mean - c.Transfer.SE, c.Transfer.Mean, c.TransferBelow * 1.1} {
			if !math.IsNaN(v) {
				least = min(least, v)
			}
		}
	}
	p.X.Min, p.X.Max = least*1.05, 0
	for _, c := range f.Points {
		m.upTo("", p.X.Min, c.TransferBelow, c.At, shade(criticalColor, c.Used))
	}
	return p, m.err
}

// shade returns gray for unused points.
func shade(c color.Color, used bool) color.Color {
	if used {
		return c
	}
	return unusedColor
}

// marks adds points and lines to a plot, with one legend entry per kind.
type marks struct {
	p     *plot.Plot
	named map[string]bool
	err   error
}

func (m *marks) name(name string, c color.Color, t plot.Thumbnailer) {
	switch {
	case name == "":
		return
	case c == unusedColor:
		name = "not used"
	}
	if m.named == nil {
		m.named = map[string]bool{}
	}
	if !m.named[name] {
		m.p.Legend.Add(name, t)
	}
	m.named[name] = true
}

// bar draws a value with its error bar.
func (m *marks) bar(name string, b Bar, at float64, c color.Color, shape draw.GlyphDrawer) {
	if math.IsNaN(b.Mean) {
		return
	}
	if b.SE > 0 && !math.IsInf(b.SE, 0) {
		m.line(b.Mean-b.SE, at, b.Mean+b.SE, at, c)
	}
	s, err := plotter.NewScatter(plotter.XYs{{X: b.Mean, Y: at}})
	if err != nil {
		m.err = err
		return
	}
	s.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(3.5), Shape: shape}
	m.p.Add(s)
	m.name(name, c, s)
}

// upTo draws the range from from to a bound.
func (m *marks) upTo(name string, from, bound, at float64, c color.Color) {
	if math.IsNaN(bound) {
		return
	}
	l := m.line(from, at, bound, at, c)
	s, err := plotter.NewScatter(plotter.XYs{{X: bound, Y: at}})
	if err != nil {
		m.err = err
		return
	}
	s.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(4), Shape: draw.PlusGlyph{}}
	m.p.Add(s)
	if l != nil {
		m.name(name, c, s)
	}
}

func (m *marks) line(fromX, fromY, toX, toY float64, c color.Color) *plotter.Line {
	l, err := plotter.NewLine(plotter.XYs{{X: fromX, Y: fromY}, {X: toX, Y: toY}})
	if err != nil {
		m.err = err
		return nil
	}
	l.Color, l.Width = c, vg.Points(1.2)
	m.p.Add(l)
	return l
}

// law draws the branches of a law where they are positive, and their mean.
func (m *marks) law(all []LawPoint) {
	var outline, middle plotter.XYs
	for _, c := range all {
		if c.Dilute >= 0 {
			outline = append(outline, plotter.XY{X: c.Dilute, Y: c.At})
		}
		middle = append(middle, plotter.XY{X: (c.Dense + c.Dilute) / 2, Y: c.At})
	}
	for k := range all {
		c := all[len(all)-1-k]
		outline = append(outline, plotter.XY{X: c.Dense, Y: c.At})
	}
	m.curve("law near Tc", outline, nil)
	m.curve("mean of both phases", middle, []vg.Length{vg.Points(3), vg.Points(3)})
}

func (m *marks) curve(name string, points plotter.XYs, dashes []vg.Length) {
	if len(points) == 0 {
		return
	}
	l, err := plotter.NewLine(points)
	if err != nil {
		m.err = err
		return
	}
	l.Color, l.Width, l.Dashes = traceColor, vg.Points(1.5), dashes
	m.p.Add(l)
	m.name(name, traceColor, l)
}
