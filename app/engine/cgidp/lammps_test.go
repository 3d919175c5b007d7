package cgidp

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
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
			near(t, "bond energy", e.bond, exact.bond, 1e-9)
			near(t, "pair energy", e.stick+e.screen, exact.pair, 1e-9)
			near(t, "potential energy", e.total(), exact.total, 1e-9)

			// The tables with which speeds are compared.
			fast := newLAMMPS(t, d.model, fastLAMMPS).run(t, d, 0)
			near(t, "pair energy of tables", fast.pair, exact.pair, tableError*float64(len(d.x)))
			t.Logf("%.6f kJ/mol, LAMMPS %+.1e, with %s tables %+.1e",
				e.total(), exact.total-e.total(), fastLAMMPS.style, fast.total-e.total())
		})
	}
}

// tableError is how much energy per bead the tables of fastLAMMPS may lack or
// add, in kJ/mol. They do so by less than half of it.
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

// equilibrated is a chain after some steps per residue. Rg takes about 60 to
// forget its value, and the start structure with it.
func equilibrated(t testing.TB, name string, steps int) *dynamics {
	t.Helper()
	if raceDetector {
		steps /= 10
	}
	d := referenceProtein(t, name).dynamics(t)
	advance(t, d, steps*d.model.size())
	return d
}

// lammpsForces are the forces of the potential alone: LAMMPS would add those of
// the bath, which fade with the friction.
func lammpsForces(t testing.TB, d *dynamics, s lammpsSettings) []vec {
	t.Helper()
	still := *d.model
	still.friction = 1e-30
	l := newLAMMPS(t, &still, s)
	l.run(t, d, 0, "-var", "forces", l.path("forces.txt"))
	text, err := os.ReadFile(l.path("forces.txt"))
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(text), "ITEM: ATOMS id fx fy fz")
	var forces []vec
	for row := range strings.Lines(strings.TrimSpace(rows)) {
		f := strings.Fields(row)
		forces = append(forces, vec{parse(t, f[1]), parse(t, f[2]), parse(t, f[3])})
	}
	if len(forces) != len(d.x) {
		t.Fatalf("LAMMPS gave %d forces for %d beads", len(forces), len(d.x))
	}
	return forces
}

// relativeDifference is the root mean square of a - b by that of b.
func relativeDifference(a, b []vec) float64 {
	var wrong, all float64
	for i := range b {
		wrong += a[i].sub(b[i]).norm2()
		all += b[i].norm2()
	}
	return math.Sqrt(wrong / all)
}

// The settings beside the script are those of the chains that LAMMPS is given.
func TestLAMMPSSettingsMatchReference(t *testing.T) {
	for _, name := range lammpsProteins {
		p := referenceProtein(t, name)
		path := lammpsSettingsFile(len(p.sequence))
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s, faults := Parse(text, nil)
		if len(faults) > 0 {
			t.Errorf("%s: %v", path, faults)
			continue
		}
		if len(s.Sequences) != 1 || s.Sequences[0].Residues != p.sequence || s.Sequences[0].Name != name {
			t.Errorf("%s: sequences %v, want %s alone", path, s.Sequences, name)
		}
		if got := s.conditions(); got != p.conditions {
			t.Errorf("%s: conditions %+v, want %+v", path, got, p.conditions)
		}
	}
}

func lammpsSettingsFile(residues int) string {
	return fmt.Sprintf("testdata/lammps/settings-%d.json", residues)
}
