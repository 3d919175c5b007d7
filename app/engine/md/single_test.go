package md

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

// Forces in a dense mixture differ from exact ones by less than a millionth of their root
// mean square, the same tolerance as for the forces on one chain, however far a chain has
// moved.
func TestSinglePrecisionSuffices(t *testing.T) {
	t.Parallel()
	model, wide := slabProtein(t), MinBoxEdge+0.2
	x, height := dense(t, model, enginetest.Length(10, 10, 25), wide)
	box := Vec{wide, wide, height}
	m := NewMixture([]Component{{model, len(x) / model.Size()}}, box)
	for _, edges := range []float64{0, 1, -3, 1000} {
		far := slices.Clone(x)
		for i := range far {
			far[i] = far[i].AddScaled(edges, box)
		}
		d := startedAt(t, m, far, 1)
		_, want := plainSums(m, far, nil)
		if off := relativeDifference(d.forces(), want); !(off < 1e-6) {
			t.Errorf("%g edges away, forces differ by %.2g of their size", edges, off)
		}
	}
}

// Groups of charges that are far apart along a chain are kept short enough for
// separations to fit the integer range.
func TestGroupsAreShorterThanTheRangeOfNumbers(t *testing.T) {
	var beads []int32
	for k := range int32(40) {
		beads = append(beads, k*k)
	}
	var again []int32
	for g := range groupsOf(beads) {
		if len(g) > quadSize || g[len(g)-1]-g[0] > maxGroupSpan {
			t.Errorf("a group of %v", g)
		}
		again = append(again, g...)
	}
	if !slices.Equal(again, beads) {
		t.Errorf("%v became %v", beads, again)
	}
	if most := 2*maxGroupSpan*maxBond + chargeCutoff + outerSkin; most >= positionUnit*(1<<32)-chargeCutoff {
		t.Errorf("beads up to %g nm apart could seem to be within the cutoff", most)
	}
}

func TestFineUnits(t *testing.T) {
	for _, c := range []struct {
		nm   float64
		want int32
	}{
		{0, 0},
		{positionUnit, 1},
		{-positionUnit, -1},
		{0.4 * positionUnit, 0},
		{0.6 * positionUnit, 1},
		{-0.6 * positionUnit, -1},
		{1, 1 << 25},
		{63, 63 << 25},
		{64, math.MinInt32},
		{-64, math.MinInt32},
		{128 + 3*positionUnit, 3},
		{-12800000 - 5*positionUnit, -5},
	} {
		must.Equal(t, fmt.Sprintf("%v nm", c.nm), toFine(c.nm), c.want)
	}
}
