package cgidp

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPlots(t *testing.T) {
	t.Parallel()
	dir, _ := simulate(t, `{"sequences":["`+hst5+`"],"names":["Hst5"],"steps":20000,"replicas":2}`)
	checkRgPlot(t, filepath.Join(dir, "Hst5", "rg.svg"))
	checkDistancePlot(t, filepath.Join(dir, "Hst5", "distance_map.png"), readCSV(t, dir, "Hst5", "distance_map.csv"))
}

func checkRgPlot(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	texts, elements := readSVG(t, content)
	for _, want := range []string{"Hst5", "million steps", "radius of gyration / nm", "Rg of 2 replicas", "running mean", "equilibration, left out", "density per nm"} {
		if !slices.Contains(texts, want) {
			t.Errorf("rg.svg lacks %q among %q", want, texts)
		}
	}
	if elements["svg"] != 1 || elements["path"] < histogramBins/4 {
		t.Errorf("rg.svg has elements %v", elements)
	}
}

// readSVG returns what is written in a picture, and how often elements occur.
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
		if err != nil {
			t.Fatal(err)
		}
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

// checkDistancePlot looks for the colours of the least and the greatest distance,
// and for axes and numbers to the left of the map.
func checkDistancePlot(t *testing.T, path string, distances [][]string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if size := img.Bounds().Size(); size != image.Pt(mapWidth, mapHeight) {
		t.Errorf("%v pixels", size)
	}
	longest, middle := 0.0, parse(t, distances[0][12])
	for _, row := range distances {
		for _, text := range row {
			longest = max(longest, parse(t, text))
		}
	}
	colors := distanceColors(longest)
	for _, distance := range []float64{0, middle} {
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

func TestPaintDistances(t *testing.T) {
	colors := distanceColors(3)
	img := image.NewNRGBA(image.Rect(0, 0, 100, 100))
	at := func(i, j int) float64 { return math.Abs(float64(i-2*j)) / 3 }
	paintDistances(img, image.Rect(10, 20, 52, 62), 4, at, colors)
	for i := range 4 {
		for j := range 4 {
			got := img.NRGBAAt(10+42*(2*i+1)/8, 62-42*(2*j+1)/8)
			if want := colorOf(at(i, j), colors); got != want {
				t.Errorf("cell %d, %d is %v, want %v", i, j, got, want)
			}
		}
	}
	if c := img.NRGBAAt(9, 40); c.A != 0 {
		t.Errorf("painted beside the area: %v", c)
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
		if got := strings.Join(labels, " "); got != tt.want {
			t.Errorf("from %g to %g: %s, want %s", tt.low, tt.high, got, tt.want)
		}
	}
}

func TestResidueTicks(t *testing.T) {
	for _, n := range []int{5, 10, 24, 140, 2000} {
		ticks := residueTicks(n)
		if first := ticks[0]; first.Value != 1 || first.Label != "1" {
			t.Errorf("%d residues: first tick %v", n, first)
		}
		if last := ticks[len(ticks)-1]; last.Value > float64(n) || last.Value < 0.5*float64(n) || len(ticks) > 11 {
			t.Errorf("%d residues: %d ticks, the last at %g", n, len(ticks), last.Value)
		}
	}
}
