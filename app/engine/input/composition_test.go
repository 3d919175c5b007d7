package input

import (
	"math"
	"testing"
)

// The line of the plot is at a charge of 2.785 times the scaled hydropathy, less 1.151, of either sign.
func TestDisorder(t *testing.T) {
	for _, charge := range []float64{-0.3, 0, 0.3} {
		if got, want := Disorder(0, charge), math.Abs(charge)+1.151-2.785/2; math.Abs(got-want) > 1e-12 {
			t.Errorf("charge %g: %g, want %g", charge, got, want)
		}
	}
}
