package md

import (
	"math"
	"os"
	"strings"
	"testing"

	"molrun/app/test/enginetest"
)

// lammpsProteins are compared with LAMMPS: 24, 71, 140 and 441 residues.
var lammpsProteins = []string{"Hst5", "DSS1", "aSyn140", "ht2N4R"}

func TestPotentialEnergyEqualsLAMMPS(t *testing.T) {
	lammpsProgram(t)
	for _, name := range lammpsProteins {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := equilibrated(t, name, 60)
			e := d.field.energy(d.x)
			exact := newLAMMPS(t, d.model, exactLAMMPS).run(t, d, 0)
			enginetest.Near(t, "bond energy", e.bond, exact.bond, 1e-9)
			enginetest.Near(t, "pair energy", e.stick+e.screen, exact.pair, 1e-9)
			enginetest.Near(t, "potential energy", e.total(), exact.total, 1e-9)

			// The tables with which speeds are compared.
			fast := newLAMMPS(t, d.model, fastLAMMPS).run(t, d, 0)
			enginetest.Near(t, "pair energy of tables", fast.pair, exact.pair, tableError*float64(len(d.x)))
			t.Logf("%.6f kJ/mol, LAMMPS %+.1e, with %s tables %+.1e",
				e.total(), exact.total-e.total(), fastLAMMPS.style, fast.total-e.total())
		})
	}
}

// tableError is the largest error of the tables of fastLAMMPS, in kJ/mol per bead.
// They reach less than half of it.
const tableError = 1e-3

func TestForcesEqualLAMMPS(t *testing.T) {
	lammpsProgram(t)
	for _, name := range lammpsProteins {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := equilibrated(t, name, 60)
			exact := relativeDifference(d.field.forces(), lammpsForces(t, d, exactLAMMPS))
			fast := relativeDifference(d.field.forces(), lammpsForces(t, d, fastLAMMPS))
			t.Logf("forces differ by %.1e of their size, with %s tables by %.1e", exact, fastLAMMPS.style, fast)
			if exact > 1e-7 || fast > 1e-3 {
				t.Error("that is too much")
			}
		})
	}
}

// equilibrated is a chain after some steps per residue. The correlation time of Rg
// is about 60 of them.
func equilibrated(t testing.TB, name string, steps int) *Dynamics {
	t.Helper()
	if enginetest.RaceDetector {
		steps /= 10
	}
	d := started(t, referenceModel(t, name))
	advance(t, d, steps*d.model.Size())
	return d
}

// lammpsForces are the forces of the potential alone.
func lammpsForces(t testing.TB, d *Dynamics, s lammpsSettings) []Vec {
	t.Helper()
	forces, _ := newLAMMPS(t, d.model, s).forces(t, d)
	return forces
}

// forces are those of the potential alone, with what the log says. LAMMPS would add those of
// the thermostat, which vanish with the friction.
func (l *lammps) forces(t testing.TB, d interface{ beads() lammpsBeads }, options ...string) ([]Vec, lammpsLog) {
	t.Helper()
	still := *l
	still.options = append([]string{"-var", "friction", "1e-30"}, l.options...) // the first one counts
	log := still.run(t, d, 0, append(options, "-var", "forces", l.path("forces.txt"))...)
	text, err := os.ReadFile(l.path("forces.txt"))
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(text), "ITEM: ATOMS id fx fy fz")
	var forces []Vec
	for row := range strings.Lines(strings.TrimSpace(rows)) {
		f := strings.Fields(row)
		forces = append(forces, Vec{enginetest.Parse(t, f[1]), enginetest.Parse(t, f[2]), enginetest.Parse(t, f[3])})
	}
	if n := len(d.beads().x); len(forces) != n {
		t.Fatalf("LAMMPS gave %d forces for %d beads", len(forces), n)
	}
	return forces, log
}

// relativeDifference is the root mean square of a - b divided by that of b.
func relativeDifference(a, b []Vec) float64 {
	var wrong, all float64
	for i := range b {
		wrong += a[i].Sub(b[i]).Norm2()
		all += b[i].Norm2()
	}
	return math.Sqrt(wrong / all)
}
