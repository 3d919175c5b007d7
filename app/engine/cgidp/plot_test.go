package cgidp

import (
	"bytes"
	"image/png"
	"strings"
	"testing"

	"molrun/app/engine/plot"
	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

func TestPlotsShowResults(t *testing.T) {
	t.Parallel()
	dir, _ := engine.Simulate(t, `{"sequences":["`+hst5+`"],"names":["Hst5"],"steps":20000,"replicas":2}`)
	svg := string(enginetest.Read(t, dir, "Hst5", "rg.svg"))
	for _, want := range []string{"Hst5, 298 K, pH 7, ionic strength 0.15 mol/L", "Rg of 2 replicas", "running mean", "equilibration, left out"} {
		if !strings.Contains(svg, want) {
			t.Errorf("rg.svg is missing %q", want)
		}
	}
	distances := enginetest.ReadCSV(t, dir, "Hst5", "distance_map.csv")
	want, err := plot.DistanceMap("Hst5", len(distances), func(i, j int) float64 { return enginetest.Parse(t, distances[i][j]) })
	must.OK(t, err)
	comparePictures(t, enginetest.Read(t, dir, "Hst5", "distance_map.png"), want)
}

// comparePictures compares the maps, which are to the left of the color bar. It allows
// for rounding of the distances in the table.
func comparePictures(t *testing.T, got, want []byte) {
	t.Helper()
	a, err := png.Decode(bytes.NewReader(got))
	must.OK(t, err)
	b, err := png.Decode(bytes.NewReader(want))
	must.OK(t, err)
	must.Equal(t, "bounds", a.Bounds(), b.Bounds())
	near := func(a, b uint32) bool { return max(a, b)-min(a, b) <= 2<<8 }
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dy() { // the map is a square
			r, g, blue, _ := a.At(x, y).RGBA()
			wantR, wantG, wantBlue, _ := b.At(x, y).RGBA()
			if !near(r, wantR) || !near(g, wantG) || !near(blue, wantBlue) {
				t.Fatalf("pixel %d, %d is %v, want %v", x, y, a.At(x, y), b.At(x, y))
			}
		}
	}
}
