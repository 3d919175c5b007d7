package md

import (
	"slices"
	"testing"
)

// loops are those over pairs, for one kind of processor.
type loops struct {
	name   string
	stick  func([]quad, *pairList)
	screen func([]quad, *pairList, *screenTable)
}

// The loops over pairs in assembly give the same bits as those in Go, during a run
// and with beads on top of each other, just within a cutoff, or out of reach.
func TestVectorLoopsEqualPortableOnes(t *testing.T) {
	all := vectorLoops()
	if len(all) == 0 {
		t.Skip("skipped: this processor has no vector instructions that the engine uses")
	}
	for _, name := range []string{"Hst5", "DSS1", "aSyn140"} {
		d := started(t, referenceModel(t, name))
		f := d.field
		for range 50 {
			advance(t, d, 40)
			f.compareLoops(t, all)
		}
		for _, r := range []float64{0, 1e-200, 1e-9, 0.01, 0.2, 2, 4, 1e5} {
			last, lane := bead(f.beads, len(d.x)-1)
			last.setPosition(lane, f.beads[0].position(0).AddScaled(r, Vec{X: 1}))
			charge, lane := bead(f.charges, len(f.charged)-1)
			charge.setPosition(lane, f.charges[0].position(0).AddScaled(r, Vec{Y: 1}))
			f.stick.build(f.beads)
			f.screen.build(f.charges)
			f.compareLoops(t, all)
		}
	}
}

func (f *field) compareLoops(t *testing.T, all []loops) {
	t.Helper()
	stick, screen := slices.Clone(f.beads), slices.Clone(f.charges)
	portableStick(stick, &f.stick.pairList)
	portableScreen(screen, &f.screen.pairList, f.model.screen)
	for _, l := range all {
		quads := slices.Clone(f.beads)
		l.stick(quads, &f.stick.pairList)
		compareForces(t, l.name+" Ashbaugh-Hatch", quads, stick)
		quads = slices.Clone(f.charges)
		l.screen(quads, &f.screen.pairList, f.model.screen)
		compareForces(t, l.name+" Debye-Hückel", quads, screen)
	}
}

func compareForces(t *testing.T, kind string, got, want []quad) {
	t.Helper()
	for k := range want {
		for lane := range quadSize {
			g, w := got[k].force(lane), want[k].force(lane)
			if !sameNumber(g.X, w.X) || !sameNumber(g.Y, w.Y) || !sameNumber(g.Z, w.Z) {
				t.Errorf("%s: force on bead %d is %v, in portable Go %v", kind, k*quadSize+lane, g, w)
			}
		}
	}
}

func sameNumber(a, b float64) bool { return a == b || a != a && b != b }
