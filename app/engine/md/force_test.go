package md

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

// spiral returns a test conformation that winds along z.
func spiral(n int) []Vec {
	x := make([]Vec, n)
	for i := range x {
		angle := float64(i)
		x[i] = Vec{0.35 * math.Cos(angle), 0.35 * math.Sin(angle), 0.17 * angle}
	}
	return x
}

// The reference values come from two other implementations of the model, which agree in
// all digits.
func TestEnergiesOfSpiral(t *testing.T) {
	tests := []struct {
		name                                  string
		charge, mass                          float64
		bond, ashbaughHatch, debyeHueckel     float64
		ashbaughHatchPairs, debyeHueckelPairs int
		rg, ree                               float64
		first                                 *Vec
	}{
		{
			"Hst5", 5.214574, 3036.30, 1.334431, -16.590786, 2.521065, 175, 110, 1.203701, 3.957732,
			&Vec{12.2365, -23.8202, -12.6144},
		},
		{
			"DSS1", -18, 8099.55, 4.061312, -36.451891, 28.877441, 645, 228, 3.411572, 11.903774,
			&Vec{19.1255, -28.8187, -16.4267},
		},
		{"aSyn140", -8.961713, 14459.85, 8.064606, -60.946088, 13.324666, 1335, 239, 7.060270, 23.631462, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := referenceModel(t, tt.name)
			x := spiral(m.Size())
			f := newField(m)
			if bead := f.compute(x); bead >= 0 {
				t.Fatalf("bond of bead %d", bead)
			}
			enginetest.Near(t, "net charge", m.NetCharge(), tt.charge, 1e-6)
			enginetest.Near(t, "mass", m.TotalMass(), tt.mass, 1e-6)
			e := f.energy(x)
			enginetest.Near(t, "bond energy", e.bond, tt.bond, 1e-5)
			enginetest.Near(t, "Ashbaugh-Hatch energy", e.ashbaughHatch, tt.ashbaughHatch, 1e-5)
			enginetest.Near(t, "Debye-Hückel energy", e.debyeHueckel, tt.debyeHueckel, 1e-5)
			enginetest.Near(t, "Rg", m.GyrationRadius(x), tt.rg, 1e-6)
			enginetest.Near(t, "end to end", EndToEnd(x), tt.ree, 1e-6)
			must.Equal(t, "Ashbaugh-Hatch pairs", f.ashbaughHatch.pairsWithin(f.beads, ashbaughHatchCutoff), tt.ashbaughHatchPairs)
			must.Equal(t, "Debye-Hückel pairs", f.debyeHueckel.pairsWithin(f.charges, chargeCutoff), tt.debyeHueckelPairs)
			if tt.first != nil {
				enginetest.Near(t, "force on bead 0", f.force(0).Sub(*tt.first).Norm(), 0, 1e-4)
			}
		})
	}
}

func (l *pairList) pairsWithin(quads []quad, cutoff float64) int {
	count := 0
	for i, j := range l.all() {
		a, lane := bead(quads, i)
		b, other := bead(quads, j)
		if a.position(lane).Sub(b.position(other)).Norm() < cutoff {
			count++
		}
	}
	return count
}

func TestEnergiesAndForcesFollowTheFormulas(t *testing.T) {
	d := started(t, referenceModel(t, "DSS1"))
	advance(t, d, 5000)
	sums, forces := chainSums(d.model, d.x, nil)
	enginetest.Near(t, "energy", d.field.energy(d.x).total(), sums.Energy(), 1e-8)
	if off := relativeDifference(d.field.forces(), forces); !(off < 1e-7) {
		t.Errorf("forces differ by %.1e of their size", off)
	}
}

// relativeDifference returns the root mean square of a - b divided by that of b.
func relativeDifference(a, b []Vec) float64 {
	var wrong, all float64
	for i := range b {
		wrong += a[i].Sub(b[i]).Norm2()
		all += b[i].Norm2()
	}
	return math.Sqrt(wrong / all)
}

func checkAgainstPlain(t *testing.T, d *Dynamics) {
	t.Helper()
	_, forces := chainSums(d.model, d.x, d.model.debyeHueckel)
	for i, want := range forces {
		if diff := d.field.force(i).Sub(want).Norm(); diff > 1e-9*(1+want.Norm()) {
			t.Fatalf("step %d, bead %d: force %v, over all pairs %v", d.step, i, d.field.force(i), want)
		}
	}
}

func TestListsContainAllPairs(t *testing.T) {
	times := enginetest.Length(8, 40, 200)
	for _, name := range []string{"DSS1", "aSyn140", "ht2N4R"} {
		d := started(t, referenceModel(t, name))
		rng := rand.New(rand.NewPCG(1, 1))
		for range times {
			advance(t, d, 1+rng.IntN(100))
			checkAgainstPlain(t, d)
		}
		// Move one bead by more than the skin.
		last := len(d.x) - 1
		d.x[last] = d.x[last-1].AddScaled(bondLength, direction(rng))
		d.field.compute(d.x)
		checkAgainstPlain(t, d)
	}
}

// Forces must not depend on when lists were built: a resumed run has no lists.
func TestForcesDoNotDependOnLists(t *testing.T) {
	d := started(t, referenceModel(t, "DSS1"))
	for range 50 {
		advance(t, d, 17)
		fresh := newField(d.model)
		fresh.compute(d.x)
		if got := d.field.forces(); !slices.Equal(got, fresh.forces()) {
			t.Fatalf("step %d: forces %v, with fresh lists %v", d.step, got, fresh.forces())
		}
	}
}

func TestComputeFindsBrokenBond(t *testing.T) {
	for name, spoil := range map[string]func(*Vec){
		"long bond": func(p *Vec) { p.X += 1.5 },
		"no number": func(p *Vec) { p.Y = math.NaN() },
		"infinite":  func(p *Vec) { p.Z = math.Inf(1) },
	} {
		for spoiled, want := range map[int]int{7: 6, 1: 0, 0: 0} {
			d := started(t, referenceModel(t, "Hst5"))
			spoil(&d.x[spoiled])
			must.Equal(t, fmt.Sprintf("%s of bead %d: bead", name, spoiled), d.field.compute(d.x), want)
		}
	}
}

// forces returns the forces on all beads.
func (f *field) forces() []Vec {
	all := make([]Vec, f.model.Size())
	for i := range all {
		all[i] = f.force(i)
	}
	return all
}
