package md

import (
	"math"
	"slices"
	"testing"
)

// eachProcessor calls f with each set of vector instructions that this processor
// supports, and restores the settings.
func eachProcessor(t *testing.T, f func(name string)) {
	t.Helper()
	with512 := hasAVX512
	defer func() { hasAVX512 = with512 }()
	if with512 {
		f("AVX-512")
	}
	hasAVX512 = false
	f("AVX2")
}

// The assembly pair loops give the same bits as the Go loops, during a run and with beads
// on top of each other, just within a cutoff, or out of range.
func TestVectorLoopsEqualPortableOnes(t *testing.T) {
	if !hasAVX2 {
		t.Skip("skipped: this processor has no vector instructions that the engine uses")
	}
	for _, name := range []string{"Hst5", "DSS1", "aSyn140"} {
		d := started(t, referenceModel(t, name))
		f := d.field
		for range 50 {
			advance(t, d, 40)
			f.compareLoops(t)
		}
		for _, r := range []float64{0, 1e-200, 1e-9, 0.01, 0.2, 2, 4, 1e5} {
			last, lane := bead(f.beads, len(d.x)-1)
			last.setPosition(lane, f.beads[0].position(0).AddScaled(r, Vec{X: 1}))
			charge, lane := bead(f.charges, len(f.charged)-1)
			charge.setPosition(lane, f.charges[0].position(0).AddScaled(r, Vec{Y: 1}))
			f.ashbaughHatch.build(f.beads)
			f.debyeHueckel.build(f.charges)
			f.compareLoops(t)
		}
	}
}

func (f *field) compareLoops(t *testing.T) {
	t.Helper()
	ashbaughHatch, debyeHueckel := slices.Clone(f.beads), slices.Clone(f.charges)
	portableAshbaughHatch(ashbaughHatch, &f.ashbaughHatch.pairList)
	portableDebyeHueckel(debyeHueckel, &f.debyeHueckel.pairList, f.model.debyeHueckel)
	eachProcessor(t, func(name string) {
		quads := slices.Clone(f.beads)
		addAshbaughHatch(quads, &f.ashbaughHatch.pairList)
		compareForces(t, name+" Ashbaugh-Hatch", quads, ashbaughHatch)
		quads = slices.Clone(f.charges)
		addDebyeHueckel(quads, &f.debyeHueckel.pairList, f.model.debyeHueckel)
		compareForces(t, name+" Debye-Hückel", quads, debyeHueckel)
	})
}

// The assembly pair loops of mixtures, in single precision, give the same bits as the Go
// loops.
func TestVectorLoopsOfMixturesEqualPortableOnes(t *testing.T) {
	if !hasAVX2 {
		t.Skip("skipped: this processor has no vector instructions that the engine uses")
	}
	d := setOut(t, mixed(t, 5, Vec{10, 9, 30}), 1)
	for range 20 {
		d.advance(t, 20)
		d.compareLoops(t)
	}
	for _, r := range []float64{0, positionUnit, 1e-6, 0.01, 0.2, 2, 4, 60} {
		for _, kind := range []*domains{d.ashbaughHatch, d.debyeHueckel} {
			for k := range kind.domain {
				quads := kind.domain[k].quads
				last := &quads[len(quads)-1]
				last.x[0], last.y[0], last.z[0] = quads[0].x[0]+toFine(r), quads[0].y[0], quads[0].z[0]
			}
		}
		d.compareLoops(t)
	}
}

func (d *Motion) compareLoops(t *testing.T) {
	t.Helper()
	for k := range d.ashbaughHatch.domain {
		domain := &d.ashbaughHatch.domain[k]
		got, want := slices.Clone(domain.quads), slices.Clone(domain.quads)
		addAshbaughHatch32(got, &domain.pairList)
		portableAshbaughHatch32(want, &domain.pairList)
		compareForces(t, "Ashbaugh-Hatch", got, want)
	}
	for k := range d.debyeHueckel.domain {
		domain := &d.debyeHueckel.domain[k]
		got, want := slices.Clone(domain.quads), slices.Clone(domain.quads)
		addDebyeHueckel32(got, &domain.pairList, d.mix.debyeHueckel)
		portableDebyeHueckel32(want, &domain.pairList, d.mix.debyeHueckel)
		compareForces(t, "Debye-Hückel", got, want)
	}
}

func compareForces[Q any, P interface {
	*Q
	force(lane int) Vec
}](t *testing.T, kind string, got, want []Q) {
	t.Helper()
	same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
	for k := range want {
		for lane := range quadSize {
			g, w := P(&got[k]).force(lane), P(&want[k]).force(lane)
			if !same(g.X, w.X) || !same(g.Y, w.Y) || !same(g.Z, w.Z) {
				t.Fatalf("%s: force on bead %d is %v, in portable Go %v", kind, k*quadSize+lane, g, w)
			}
		}
	}
}
