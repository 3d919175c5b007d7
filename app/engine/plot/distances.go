package plot

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette"
	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Size of the map in pixels.
const (
	mapWidth  = 720
	mapHeight = 600
	mapDPI    = 96
)

// DistanceMap draws the mean distances of n residues, with residue numbers and a color
// bar, as PNG. at returns the distance of two residues, counted from 0, in nm; it is
// symmetric.
func DistanceMap(title string, n int, at func(i, j int) float64) ([]byte, error) {
	m := Map{Title: title, Across: n, Up: n, AcrossLabel: "residue", UpLabel: "residue", Unit: "mean distance / nm", At: at}
	return m.PNG()
}

// Map is a map of values for pairs of residues.
type Map struct {
	Title                string
	Across, Up           int // number of residues along the axes
	AcrossLabel, UpLabel string
	Unit                 string                 // label of the color bar
	At                   func(i, j int) float64 // value for two residues, counted from 0; never negative
}

// PNG draws the map with residue numbers and a color bar.
func (m *Map) PNG() ([]byte, error) {
	greatest := 0.0
	for i := range m.Across {
		for j := range m.Up {
			greatest = max(greatest, m.At(i, j))
		}
	}
	if greatest == 0 {
		greatest = 1 // arbitrary, for the color bar
	}
	colors := distanceColors(greatest)
	canvas := vgimg.NewWith(vgimg.UseWH(pixels(mapWidth), pixels(mapHeight)), vgimg.UseDPI(mapDPI))
	whole := vgdraw.New(canvas)
	left := vgdraw.Crop(whole, 0, pixels(mapHeight)-whole.Max.X, 0, 0)
	axes := m.axes()
	axes.Draw(left)
	colorBar(m.Unit, colors).Draw(vgdraw.Crop(whole, pixels(mapHeight+20), -pixels(10), 0, 0))
	img := canvas.Image()
	m.paint(img, areaOf(axes.DataCanvas(left).Rectangle), colors)
	var b bytes.Buffer
	err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, img)
	return b.Bytes(), err
}

// viridis is a perceptually uniform color scale, suitable for color-blind readers and for
// print.
var viridis = []color.Color{
	color.NRGBA{R: 0x44, G: 0x01, B: 0x54, A: 0xff},
	color.NRGBA{R: 0x47, G: 0x2d, B: 0x7b, A: 0xff},
	color.NRGBA{R: 0x3b, G: 0x52, B: 0x8b, A: 0xff},
	color.NRGBA{R: 0x2c, G: 0x72, B: 0x8e, A: 0xff},
	color.NRGBA{R: 0x21, G: 0x91, B: 0x8c, A: 0xff},
	color.NRGBA{R: 0x28, G: 0xae, B: 0x80, A: 0xff},
	color.NRGBA{R: 0x5e, G: 0xc9, B: 0x62, A: 0xff},
	color.NRGBA{R: 0xad, G: 0xdc, B: 0x30, A: 0xff},
	color.NRGBA{R: 0xfd, G: 0xe7, B: 0x25, A: 0xff},
}

// distanceColors returns a color map from dark at 0 to bright at longest, in nm.
func distanceColors(longest float64) palette.ColorMap {
	colors, err := moreland.NewLuminance(viridis)
	if err != nil {
		panic(err) // viridis is in order of luminance
	}
	colors.SetMin(0)
	colors.SetMax(longest)
	return colors
}

// paint fills an area, with the first residues at the lower left.
func (m *Map) paint(img draw.Image, area image.Rectangle, colors palette.ColorMap) {
	across := func(i int) int { return area.Min.X + i*area.Dx()/m.Across }
	up := func(j int) int { return area.Max.Y - j*area.Dy()/m.Up }
	for i := range m.Across {
		for j := range m.Up {
			cell := image.Rect(across(i), up(j+1), across(i+1), up(j))
			draw.Draw(img, cell, image.NewUniform(colorOf(m.At(i, j), colors)), image.Point{}, draw.Src)
		}
	}
}

func colorOf(distance float64, colors palette.ColorMap) color.NRGBA {
	c, err := colors.At(min(distance, colors.Max()))
	if err != nil {
		return color.NRGBA{}
	}
	return color.NRGBAModel.Convert(c).(color.NRGBA)
}

func pixels(n int) vg.Length { return vg.Length(n) * vg.Inch / mapDPI }

// areaOf converts a rectangle to pixels, which count from the top.
func areaOf(r vg.Rectangle) image.Rectangle {
	pixel := func(l vg.Length) int { return int(math.Round(l.Dots(mapDPI))) }
	return image.Rect(pixel(r.Min.X), mapHeight-pixel(r.Max.Y), pixel(r.Max.X), mapHeight-pixel(r.Min.Y))
}

func (m *Map) axes() *plot.Plot {
	p := plot.New()
	p.Title.Text = m.Title
	p.X.Label.Text, p.Y.Label.Text = m.AcrossLabel, m.UpLabel
	p.X.Min, p.X.Max = 0.5, float64(m.Across)+0.5
	p.Y.Min, p.Y.Max = 0.5, float64(m.Up)+0.5
	p.X.Tick.Marker, p.Y.Tick.Marker = residueTicks(m.Across), residueTicks(m.Up)
	return p
}

// residueTicks returns ticks at the first residue and at most ten multiples of a round
// number.
func residueTicks(n int) plot.ConstantTicks {
	every := 1
	for _, every = range []int{1, 2, 5, 10, 20, 50, 100, 200} {
		if n/every <= 10 {
			break
		}
	}
	ticks := plot.ConstantTicks{{Value: 1, Label: "1"}}
	for at := every; at <= n; at += every {
		if at > 1 {
			ticks = append(ticks, plot.Tick{Value: float64(at), Label: strconv.Itoa(at)})
		}
	}
	return ticks
}

func colorBar(label string, colors palette.ColorMap) *plot.Plot {
	p := plot.New()
	p.Title.Text = " " // align with the map
	p.X.Label.Text = " "
	p.X.Tick.Marker = plot.ConstantTicks(nil)
	p.X.Width = 0
	p.Y.Label.Text = label
	p.Y.Tick.Marker = roundTicks{}
	p.Add(&plotter.ColorBar{ColorMap: colors, Vertical: true})
	return p
}
