package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestRgSVG(t *testing.T) {
	g := Rg{Title: "Hst5", Replicas: 2, Steps: 20_000, Discarded: 2000, Mean: 1.4, SE: 0.02}
	for replica := range 2 {
		var curve []Point
		for step := 200.0; step <= 20_000; step += 200 {
			curve = append(curve, Point{step, 1.4 + 0.3*math.Sin(step/700+float64(replica))})
		}
		g.Curves = append(g.Curves, curve)
	}
	content, err := g.SVG()
	must.OK(t, err)
	texts, elements := readSVG(t, content)
	for _, want := range []string{
		"Hst5", "million steps", "radius of gyration / nm", "Rg of 2 replicas", "running mean",
		"equilibration, left out", "mean ± standard error: 1.400 ± 0.020 nm", "density per nm",
	} {
		if !slices.Contains(texts, want) {
			t.Errorf("the plot is missing %q among %q", want, texts)
		}
	}
	if elements["svg"] != 1 || elements["path"] < histogramBins/4 {
		t.Errorf("the picture has elements %v", elements)
	}
}

// readSVG returns the strings in an SVG picture and the number of occurrences of each
// element.
func readSVG(t *testing.T, content []byte) (texts []string, elements map[string]int) {
	t.Helper()
	elements = map[string]int{}
	d := xml.NewDecoder(bytes.NewReader(content))
	inside := ""
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts, elements
		}
		must.OK(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			inside = token.Name.Local
			elements[inside]++
		case xml.EndElement:
			inside = ""
		case xml.CharData:
			if inside == "text" {
				texts = append(texts, string(token))
			}
		}
	}
}

// The map has the colors of the smallest and of a medium distance, with axes and numbers
// to its left.
func TestDistanceMap(t *testing.T) {
	at := func(i, j int) float64 { return 0.5 * math.Sqrt(math.Abs(float64(i-j))) }
	content, err := DistanceMap("Hst5", 24, at)
	must.OK(t, err)
	img, err := png.Decode(bytes.NewReader(content))
	must.OK(t, err)
	if size := img.Bounds().Size(); size != image.Pt(mapWidth, mapHeight) {
		t.Errorf("%v pixels", size)
	}
	colors := distanceColors(at(0, 23))
	for _, distance := range []float64{0, at(0, 12)} {
		if n := pixelsLike(img, img.Bounds(), colorOf(distance, colors)); n < 500 {
			t.Errorf("%d pixels have the colour of %.2f nm", n, distance)
		}
	}
	white, left := color.NRGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xff}, image.Rect(0, 0, 40, mapHeight)
	if n := left.Dx()*left.Dy() - pixelsLike(img, left, white); n < 300 {
		t.Errorf("%d pixels are drawn left of the map: no numbers", n)
	}
}

func pixelsLike(img image.Image, within image.Rectangle, want color.NRGBA) int {
	count := 0
	for y := within.Min.Y; y < within.Max.Y; y++ {
		for x := within.Min.X; x < within.Max.X; x++ {
			c := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
			if near8(c.R, want.R) && near8(c.G, want.G) && near8(c.B, want.B) {
				count++
			}
		}
	}
	return count
}

func near8(a, b uint8) bool { return max(a, b)-min(a, b) <= 2 }

func TestPaint(t *testing.T) {
	colors := distanceColors(3)
	img := image.NewNRGBA(image.Rect(0, 0, 100, 100))
	at := func(i, j int) float64 { return math.Abs(float64(i-2*j)) / 3 }
	(&Map{Across: 4, Up: 4, At: at}).paint(img, image.Rect(10, 20, 52, 62), colors)
	for i := range 4 {
		for j := range 4 {
			got := img.NRGBAAt(10+42*(2*i+1)/8, 62-42*(2*j+1)/8)
			if want := colorOf(at(i, j), colors); got != want {
				t.Errorf("cell %d, %d is %v, want %v", i, j, got, want)
			}
		}
	}
	if c := img.NRGBAAt(9, 40); c.A != 0 {
		t.Errorf("painted outside the area: %v", c)
	}
}

func TestRoundTicks(t *testing.T) {
	tests := []struct {
		low, high float64
		want      string
	}{
		{0, 0.6, "0.0 0.1 0.2 0.3 0.4 0.5 0.6"},
		{2.1, 6.6, "3 4 5 6"},
		{0, 8.8, "0 2 4 6 8"},
		{1.02, 1.31, "1.05 1.10 1.15 1.20 1.25 1.30"},
		{0, 2000, "0 500 1000 1500 2000"},
		{0, 1e-3, "0.0000 0.0002 0.0004 0.0006 0.0008 0.0010"},
	}
	for _, tt := range tests {
		var labels []string
		for _, tick := range (roundTicks{}).Ticks(tt.low, tt.high) {
			labels = append(labels, tick.Label)
		}
		must.Equal(t, fmt.Sprintf("from %g to %g", tt.low, tt.high), strings.Join(labels, " "), tt.want)
	}
}

func TestResidueTicks(t *testing.T) {
	for n, want := range map[int]string{
		1: "1", 5: "1 2 3 4 5", 10: "1 2 3 4 5 6 7 8 9 10", 11: "1 2 4 6 8 10", 24: "1 5 10 15 20",
		140: "1 20 40 60 80 100 120 140", 2000: "1 200 400 600 800 1000 1200 1400 1600 1800 2000",
	} {
		var labels []string
		for _, tick := range residueTicks(n) {
			if tick.Label != strconv.Itoa(int(tick.Value)) {
				t.Errorf("%d residues: %s at %g", n, tick.Label, tick.Value)
			}
			labels = append(labels, tick.Label)
		}
		must.Equal(t, fmt.Sprintf("%d residues", n), strings.Join(labels, " "), want)
	}
}

// The histogram shows a density: it is high where values are close together, regardless
// of their number.
func TestHistogramIsADensity(t *testing.T) {
	for _, samples := range []int{100, 1000} {
		var curve []Point
		for k := range samples {
			curve = append(curve, Point{float64(k), 1 + 0.5*float64(k)/float64(samples-1)})
		}
		g := Rg{Steps: int64(samples), Curves: [][]Point{curve}}
		p, err := g.histogram(g.curves())
		must.OK(t, err)
		if p.X.Max < 1.9 || p.X.Max > 2.3 { // uniform over half a nm
			t.Errorf("%d samples: the axis ends at %g per nm, want about 2", samples, p.X.Max)
		}
	}
}

// A dilute phase a thousandth as concentrated as the dense one is visible, and empty
// layers are not drawn.
func TestProfileSVG(t *testing.T) {
	f := Profile{Title: "slab", Edges: []float64{-5, 5}, Curves: []Curve{
		{Name: "one", Z: []float64{-15, -5, 5, 15}, Level: []float64{0.4, 400, 400, 0.4}},
		{Name: "two", Z: []float64{-15, -5, 5, 15}, Level: []float64{20, 0, 0, 30}},
		{Name: "three", Z: []float64{-15, -5, 5, 15}, Level: []float64{0, 0, 0, 0}},
	}}
	content, err := f.SVG()
	must.OK(t, err)
	texts, elements := readSVG(t, content)
	for _, want := range []string{"slab", "z / nm", "concentration / mg/mL", "one", "two", "0.1", "100"} {
		if !slices.Contains(texts, want) {
			t.Errorf("the plot is missing %q among %q", want, texts)
		}
	}
	if slices.Contains(texts, "three") || elements["svg"] != 1 {
		t.Errorf("what is nothing is drawn: %q", texts)
	}
	if _, err := (&Profile{Title: "nothing"}).SVG(); err != nil {
		t.Error(err)
	}
}

// The chains can differ in length, and all values can be zero.
func TestMapOfTwoChains(t *testing.T) {
	m := Map{Title: "contacts", Across: 10, Up: 30, AcrossLabel: "a", UpLabel: "b", Unit: "contacts", At: func(i, j int) float64 {
		if i >= 10 || j >= 30 {
			t.Fatalf("residues %d and %d", i, j)
		}
		return 0
	}}
	content, err := m.PNG()
	must.OK(t, err)
	img, err := png.Decode(bytes.NewReader(content))
	must.OK(t, err)
	if n := pixelsLike(img, img.Bounds(), colorOf(0, distanceColors(1))); n < mapHeight*mapHeight/2 {
		t.Errorf("%d pixels have the colour of nothing", n)
	}
}
