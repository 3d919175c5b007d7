package md

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"molrun/app/test/enginetest"
)

// The loops over pairs of mixtures give the same bits in assembly as in Go, during a run and
// with beads on top of each other, just within a cutoff, or out of reach.
func TestVectorLoopsOfMixturesEqualPortableOnes(t *testing.T) {
	if !hasVectorLoops32() {
		t.Skip("skipped: this processor has no vector instructions that the engine uses")
	}
	d := setOut(t, mixed(t, 5, Vec{10, 9, 30}), 1)
	for range 20 {
		d.advance(t, 20)
		d.compareLoops(t)
	}
	for _, r := range []float64{0, fine, 1e-6, 0.01, 0.2, 2, 4, 60} {
		for _, kind := range []*domains{d.stick, d.screen} {
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
	compare := func(name string, kind *domains, vector, portable func([]quad32, *pairList)) {
		t.Helper()
		for k := range kind.domain {
			domain := &kind.domain[k]
			got, want := slices.Clone(domain.quads), slices.Clone(domain.quads)
			vector(got, &domain.pairList)
			portable(want, &domain.pairList)
			for local := range want {
				for lane := range quadSize {
					g, w := got[local].force(lane), want[local].force(lane)
					if !sameNumber(g.X, w.X) || !sameNumber(g.Y, w.Y) || !sameNumber(g.Z, w.Z) {
						t.Fatalf("%s: force on bead %d of quad %d is %v, in portable Go %v", name, lane, local, g, w)
					}
				}
			}
		}
	}
	table := d.mix.screen
	compare("Ashbaugh-Hatch", d.stick, addStick32, portableStick32)
	compare("Debye-Hückel", d.screen,
		func(q []quad32, l *pairList) { addScreen32(q, l, table) },
		func(q []quad32, l *pairList) { portableScreen32(q, l, table) })
}

// Forces of a dense mixture differ from exact ones by less than a millionth of their root
// mean square, which is what is asked of the forces of one chain. Where a chain is does not
// matter, however far it has gone.
func TestSinglePrecisionSuffices(t *testing.T) {
	t.Parallel()
	model, wide := slabProtein(t), LeastBox+0.2
	x, height := dense(t, model, enginetest.Length(10, 10, 25), wide)
	box := Vec{wide, wide, height}
	m := NewMixture([]Component{{model, len(x) / model.Size()}}, box)
	for _, edges := range []float64{0, 1, -3, 1000} {
		d := NewMotion(m, NewTeam(1), 1, 1)
		far := slices.Clone(x)
		for i := range far {
			far[i] = far[i].AddScaled(edges, box)
		}
		if err := d.Start(far); err != nil {
			t.Fatal(err)
		}
		_, want := plainSums(m, far)
		var size, off, worst float64
		for i, f := range d.forces() {
			size += want[i].Norm2()
			off += f.Sub(want[i]).Norm2()
			worst = max(worst, f.Sub(want[i]).Norm())
		}
		n := float64(len(x))
		size, off = math.Sqrt(size/n), math.Sqrt(off/n)
		t.Logf("%g edges away: root mean squares of forces %.4g and of errors %.2g, %.2g of it; largest error %.2g", edges, size, off, off/size, worst/size)
		if !(off < 1e-6*size) {
			t.Error("forces are not close enough to exact ones")
		}
	}
}

// Groups of charges that are far apart along a chain are kept short, so that separations
// have numbers.
func TestGroupsAreShorterThanTheRangeOfNumbers(t *testing.T) {
	var beads []int32
	for k := range int32(40) {
		beads = append(beads, k*k)
	}
	var again []int32
	for g := range groupsOf(beads) {
		if len(g) > quadSize || g[len(g)-1]-g[0] > mostApart {
			t.Errorf("a group of %v", g)
		}
		again = append(again, g...)
	}
	if !slices.Equal(again, beads) {
		t.Errorf("%v became %v", beads, again)
	}
	if most := 2*mostApart*maxBond + chargeCutoff + outerSkin; most >= fine*(1<<32)-chargeCutoff {
		t.Errorf("beads up to %g nm apart could seem to be within the cutoff", most)
	}
}

func TestFineUnits(t *testing.T) {
	for _, c := range []struct {
		nm   float64
		want int32
	}{
		{0, 0},
		{fine, 1},
		{-fine, -1},
		{0.4 * fine, 0},
		{0.6 * fine, 1},
		{-0.6 * fine, -1},
		{1, 1 << 25},
		{63, 63 << 25},
		{64, math.MinInt32},
		{-64, math.MinInt32},
		{128 + 3*fine, 3},
		{-12800000 - 5*fine, -5},
	} {
		if got := toFine(c.nm); got != c.want {
			t.Errorf("%v nm are %d units, not %d", c.nm, got, c.want)
		}
	}
}

func BenchmarkInteract(b *testing.B) {
	for _, copies := range []int{10, 100} {
		b.Run(fmt.Sprintf("beads=%d", 202*copies), func(b *testing.B) {
			d := slabOf(b, copies, 1)
			for b.Loop() {
				d.interact()
			}
			pairs := float64(quadSize*quadSize) * float64(d.stick.tileCount()+d.screen.tileCount())
			b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/pairs, "ns/pair")
		})
	}
}
