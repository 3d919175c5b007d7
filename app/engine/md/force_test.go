package md

import (
	"math"
	"math/rand/v2"
	"testing"

	"molrun/app/test/enginetest"
)

// spiral is a conformation to compare numbers with: it winds up along z.
func spiral(n int) []Vec {
	x := make([]Vec, n)
	for i := range x {
		angle := float64(i)
		x[i] = Vec{0.35 * math.Cos(angle), 0.35 * math.Sin(angle), 0.17 * angle}
	}
	return x
}

// The numbers come from two other implementations of the model, which agree in all
// digits.
func TestEnergiesOfSpiral(t *testing.T) {
	tests := []struct {
		name                      string
		charge, mass              float64
		bond, stick, screen       float64
		stickPairs, screenedPairs int
		rg, ree                   float64
		first                     *Vec
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
			enginetest.Near(t, "Ashbaugh-Hatch energy", e.stick, tt.stick, 1e-5)
			enginetest.Near(t, "Debye-Hückel energy", e.screen, tt.screen, 1e-5)
			enginetest.Near(t, "Rg", m.GyrationRadius(x), tt.rg, 1e-6)
			enginetest.Near(t, "end to end", EndToEnd(x), tt.ree, 1e-6)
			if n := f.stick.pairsWithin(x, f.allBeads(), stickCutoff); n != tt.stickPairs {
				t.Errorf("%d Ashbaugh-Hatch pairs, want %d", n, tt.stickPairs)
			}
			if n := f.screen.pairsWithin(x, f.charged, chargeCutoff); n != tt.screenedPairs {
				t.Errorf("%d Debye-Hückel pairs, want %d", n, tt.screenedPairs)
			}
			if tt.first != nil {
				enginetest.Near(t, "force on bead 0", f.force(0).Sub(*tt.first).Norm(), 0, 1e-4)
			}
		})
	}
}

func (f *field) allBeads() []int32 {
	all := make([]int32, f.model.Size())
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

func (l *pairList) pairsWithin(x []Vec, beads []int32, cutoff float64) int {
	count := 0
	for i, j := range l.all() {
		if x[beads[i]].Sub(x[beads[j]]).Norm() < cutoff {
			count++
		}
	}
	return count
}

// plainEnergy is the potential energy by the formulas, over all pairs. It shares
// only the parameters with field.
func plainEnergy(m *Model, x []Vec) float64 {
	total := 0.0
	for i := range x {
		a := residues[m.types[i]]
		for j := i + 1; j < len(x); j++ {
			b := residues[m.types[j]]
			r := math.Sqrt(math.Pow(x[i].X-x[j].X, 2) + math.Pow(x[i].Y-x[j].Y, 2) + math.Pow(x[i].Z-x[j].Z, 2))
			if j == i+1 {
				total += 0.5 * 8033 * (r - 0.38) * (r - 0.38)
				continue
			}
			if r < 2 {
				sigma, lambda := (a.sigma+b.sigma)/2, (a.lambda+b.lambda)/2
				lj := func(r float64) float64 {
					return 4 * 0.8368 * (math.Pow(sigma/r, 12) - math.Pow(sigma/r, 6))
				}
				if r <= math.Pow(2, 1.0/6)*sigma {
					total += lj(r) + 0.8368*(1-lambda) - lambda*lj(2)
				} else {
					total += lambda*lj(r) - lambda*lj(2)
				}
			}
			if r < 4 {
				total += m.lBkT * m.charge[i] * m.charge[j] * (math.Exp(-m.kappa*r)/r - math.Exp(-m.kappa*4)/4)
			}
		}
	}
	return total
}

func plainStickForce(p stickPair, r2 float64) float64 {
	a := p.sigma6 / (r2 * r2 * r2)
	w := 12 * stickEnergy * a * (a - 1) / r2
	if r2 > p.min2 {
		w *= p.lambda
	}
	return w
}

// plainForces are forces over all pairs, without lists.
func plainForces(m *Model, x []Vec) []Vec {
	force := make([]Vec, len(x))
	for i := range x {
		for j := i + 1; j < len(x); j++ {
			d := x[i].Sub(x[j])
			r2 := d.Norm2()
			w := 0.0
			switch {
			case j == i+1:
				w = bondStiffness * (bondLength - math.Sqrt(r2)) / math.Sqrt(r2)
			default:
				if r2 < 4 {
					w += plainStickForce(m.stick[m.types[i]][m.types[j]], r2)
				}
				if r2 < 16 {
					w += m.lBkT * m.charge[i] * m.charge[j] * m.screen.forceOverR(r2)
				}
			}
			force[i] = force[i].AddScaled(w, d)
			force[j] = force[j].AddScaled(-w, d)
		}
	}
	return force
}

func TestForcesAreGradients(t *testing.T) {
	d := started(t, referenceModel(t, "DSS1"))
	advance(t, d, 5000)
	enginetest.Near(t, "energy", d.field.energy(d.x).total(), plainEnergy(d.model, d.x), 1e-8)

	const h = 1e-5
	var wrong, all float64
	for i := range d.x {
		force := d.field.force(i)
		for axis, f := range []float64{force.X, force.Y, force.Z} {
			slope := plainSlope(d.model, d.x, i, axis, h)
			wrong += (f + slope) * (f + slope)
			all += f * f
		}
	}
	if relative := math.Sqrt(wrong / all); relative > 1e-7 {
		t.Errorf("forces differ from the gradient by %.1e of their size", relative)
	}
}

func plainSlope(m *Model, x []Vec, bead, axis int, h float64) float64 {
	was := x[bead]
	defer func() { x[bead] = was }()
	coordinate := [3]*float64{&x[bead].X, &x[bead].Y, &x[bead].Z}[axis]
	middle := *coordinate
	*coordinate = middle + h
	above := plainEnergy(m, x)
	*coordinate = middle - h
	below := plainEnergy(m, x)
	return (above - below) / (2 * h)
}

func checkAgainstPlain(t *testing.T, d *Dynamics) {
	t.Helper()
	for i, want := range plainForces(d.model, d.x) {
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
		// A jump of one bead, by more than the skin.
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
		for i := range d.x {
			if fresh.force(i) != d.field.force(i) {
				t.Fatalf("step %d, bead %d: force %v, with fresh lists %v", d.step, i, d.field.force(i), fresh.force(i))
			}
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
			if bead := d.field.compute(d.x); bead != want {
				t.Errorf("%s of bead %d: bead %d, want %d", name, spoiled, bead, want)
			}
			if err := d.Advance(1); err == nil {
				t.Errorf("%s of bead %d: the run goes on", name, spoiled)
			}
		}
	}
}

// forces are those on all beads.
func (f *field) forces() []Vec {
	all := make([]Vec, f.model.Size())
	for i := range all {
		all[i] = f.force(i)
	}
	return all
}
