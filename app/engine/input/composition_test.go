package input

import (
	"math"
	"strings"
	"testing"

	"molrun/app/engine/md"
)

// The line is at |charge| = 2.785 × scaled hydropathy - 1.151.
func TestDisorder(t *testing.T) {
	for _, charge := range []float64{-0.3, 0, 0.3} {
		if got, want := Disorder(0, charge), math.Abs(charge)+1.151-2.785/2; math.Abs(got-want) > 1e-12 {
			t.Errorf("charge %g: %g, want %g", charge, got, want)
		}
	}
}

// Warnings cover sequences that look folded and salt concentrations outside the validity
// of the model.
func TestWarnings(t *testing.T) {
	if folded := strings.Repeat("LV", 15); len(Warnings(folded)) != 1 || len(Warnings(folded[1:])) != 0 {
		t.Errorf("30 residues: %q, 29: %q", Warnings(folded), Warnings(folded[1:]))
	}
	c := md.Conditions{Temperature: 298, PH: 7, IonicStrength: 0.01}
	if texts := ConditionWarnings(c); len(texts) != 0 {
		t.Errorf("%q", texts)
	}
	c.IonicStrength = 0.001
	if texts := ConditionWarnings(c); len(texts) != 1 || !strings.Contains(texts[0], "charges act over 9.6 nm") {
		t.Errorf("%q", texts)
	}
}
