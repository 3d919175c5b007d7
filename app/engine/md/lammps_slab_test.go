package md

import (
	"math"
	"strings"
	"testing"

	"molrun/app/test/enginetest"
)

// TestSlabEqualsLAMMPS compares energies, forces and the virial of a slab that crosses every side of its box
// with those by LAMMPS's own formulas. Its 20 chains of 50 residues have all kinds of beads.
func TestSlabEqualsLAMMPS(t *testing.T) {
	t.Parallel()
	lammpsProgram(t)
	model := NewModel(strings.Repeat(residueLetters, 2)+"KRDEKRDEYF", in(293, 6.5, 0.15))
	const copies, wide, thick = 20, 9.5, 9.
	m := NewMixture([]Component{{model, copies}}, Vec{wide, wide + 0.5, 4 * thick})
	team := NewTeam(2)
	t.Cleanup(team.Close)
	x, err := Pack(m, 1, 1, 0, thick)
	if err != nil {
		t.Fatal(err)
	}
	for i := range x {
		x[i].Z -= thick / 2 // half of the slab lies at the other end of the box
	}
	d := NewMotion(m, team, 1, 1)
	if err := d.Start(x); err != nil {
		t.Fatal(err)
	}
	d.advance(t, enginetest.Length(100, 500, 5000))

	settings := exactLAMMPS
	settings.lists = "bin"
	want, log := newLAMMPS(t, model, settings).forces(t, d, "-var", "sides", "p")
	sums := d.Sums()
	for what, v := range map[string][2]float64{
		"bonds": {sums.Bond, log.bond}, "pairs": {sums.Stick + sums.Screen, log.pair},
		"virial": {sums.Virial, 3 * log.pressure * m.Box.X * m.Box.Y * m.Box.Z},
	} {
		t.Logf("%s: %.9g kJ/mol, LAMMPS %+.1e", what, v[0], v[1]-v[0])
		if !(math.Abs(v[0]-v[1]) <= 1e-6*math.Abs(v[1])) {
			t.Errorf("%s: %.12g kJ/mol, by LAMMPS %.12g", what, v[0], v[1])
		}
	}
	wrong := relativeDifference(d.forces(), want)
	t.Logf("forces differ by %.1e of their size", wrong)
	if !(wrong < 1e-6) {
		t.Error("that is too much")
	}
}
