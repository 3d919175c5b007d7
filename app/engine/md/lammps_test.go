package md

import (
	"math"
	"strings"
	"testing"

	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

// tableError is the maximum energy error of tabledPairs, in kJ/mol per bead. The actual
// errors are less than half of this.
const tableError = 1e-3

// The chains have 24, 71, 140 and 441 residues.
func TestChainsEqualLAMMPS(t *testing.T) {
	lammpsProgram(t)
	for _, name := range []string{"Hst5", "DSS1", "aSyn140", "ht2N4R"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := equilibrated(t, name, 60)
			e := d.field.energy(d.x)
			forces, exact := newLAMMPS(t, d.model, exactPairs).forces(t, d)
			enginetest.Near(t, "bond energy", e.bond, exact.bond, 1e-9)
			enginetest.Near(t, "pair energy", e.ashbaughHatch+e.debyeHueckel, exact.pair, 1e-9)
			enginetest.Near(t, "potential energy", e.total(), exact.total, 1e-9)
			enginetest.Near(t, "relative difference of forces", relativeDifference(d.field.forces(), forces), 0, 1e-7)

			// Speed comparisons use these tables.
			forces, fast := newLAMMPS(t, d.model, tabledPairs).forces(t, d)
			enginetest.Near(t, "pair energy of tables", fast.pair, exact.pair, tableError*float64(len(d.x)))
			enginetest.Near(t, "relative difference of forces of tables", relativeDifference(d.field.forces(), forces), 0, 1e-3)
		})
	}
}

// The slab crosses every face of its box. Its 20 chains of 50 residues contain all kinds
// of beads.
func TestSlabEqualsLAMMPS(t *testing.T) {
	t.Parallel()
	lammpsProgram(t)
	model := NewModel(strings.Repeat(Letters, 2)+"KRDEKRDEYF", in(293, 6.5, 0.15))
	const copies, wide, thick = 20, 9.5, 9.
	m := NewMixture([]Component{{model, copies}}, Vec{wide, wide + 0.5, 4 * thick})
	x, err := Pack(m, 1, 1, 0, thick)
	must.OK(t, err)
	for i := range x {
		x[i].Z -= thick / 2 // half of the slab lies at the other end of the box
	}
	d := startedAt(t, m, x, 2)
	d.advance(t, enginetest.Length(100, 500, 5000))

	want, log := newLAMMPS(t, model, exactPairs).forces(t, d, "-var", "lists", "bin", "-var", "sides", "p")
	sums, volume := d.Sums(), m.Box.X*m.Box.Y*m.Box.Z
	enginetest.Near(t, "bonds", sums.Bond, log.bond, 1e-6*math.Abs(log.bond))
	enginetest.Near(t, "pairs", sums.AshbaughHatch+sums.DebyeHueckel, log.pair, 1e-6*math.Abs(log.pair))
	enginetest.Near(t, "virial", sums.Virial, 3*log.pressure*volume, 1e-6*math.Abs(3*log.pressure*volume))
	enginetest.Near(t, "relative difference of forces", relativeDifference(d.forces(), want), 0, 1e-6)
}

// equilibrated returns a chain after the given number of steps per residue. The
// autocorrelation time of Rg is about 60 steps per residue.
func equilibrated(t testing.TB, name string, steps int) *Dynamics {
	t.Helper()
	if enginetest.RaceDetector {
		steps /= 10
	}
	d := started(t, referenceModel(t, name))
	advance(t, d, steps*d.model.Size())
	return d
}

// forces returns the forces of the potential alone, with the log. LAMMPS would add the
// thermostat forces, which vanish without friction.
func (l *lammps) forces(t testing.TB, d lammpsSource, options ...string) ([]Vec, lammpsLog) {
	t.Helper()
	still := *l
	still.options = append([]string{"-var", "friction", "1e-30"}, l.options...) // the first definition counts
	log := still.run(t, d, 0, append(options, "-var", "forces", l.path("forces.txt"))...)
	text := must.Read(t, l.path("forces.txt"))
	_, rows, _ := strings.Cut(text, "ITEM: ATOMS id fx fy fz")
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
