package cgidp

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/engine/plot"
	"molrun/app/test/enginetest"
)

func TestPlotsShowResults(t *testing.T) {
	t.Parallel()
	dir, _ := simulate(t, `{"sequences":["`+hst5+`"],"names":["Hst5"],"steps":20000,"replicas":2}`)
	svg, err := os.ReadFile(filepath.Join(dir, "Hst5", "rg.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Hst5", "Rg of 2 replicas", "running mean", "equilibration, left out"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("rg.svg lacks %q", want)
		}
	}
	got, err := os.ReadFile(filepath.Join(dir, "Hst5", "distance_map.png"))
	if err != nil {
		t.Fatal(err)
	}
	distances := readCSV(t, dir, "Hst5", "distance_map.csv")
	want, err := plot.DistanceMap("Hst5", len(distances), func(i, j int) float64 { return enginetest.Parse(t, distances[i][j]) })
	if err != nil {
		t.Fatal(err)
	}
	comparePictures(t, got, want)
}

// comparePictures looks at the map, left of the colour bar. It allows for distances
// that are rounded in the table.
func comparePictures(t *testing.T, got, want []byte) {
	t.Helper()
	a, b := decodePNG(t, got), decodePNG(t, want)
	if a.Bounds() != b.Bounds() {
		t.Fatalf("pixels %v, want %v", a.Bounds(), b.Bounds())
	}
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dy() { // the map is a square
			c, d := color.NRGBAModel.Convert(a.At(x, y)).(color.NRGBA), color.NRGBAModel.Convert(b.At(x, y)).(color.NRGBA)
			if !near8(c.R, d.R) || !near8(c.G, d.G) || !near8(c.B, d.B) {
				t.Fatalf("pixel %d, %d is %v, want %v", x, y, c, d)
			}
		}
	}
}

func decodePNG(t *testing.T, content []byte) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func near8(a, b uint8) bool { return max(a, b)-min(a, b) <= 2 }
