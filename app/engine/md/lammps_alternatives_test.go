package md

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// TestLAMMPSAlternatives prints the speed of LAMMPS with other settings, relative to
// fastLAMMPS, for the proteins that CGIDP_LAMMPS_ALTERNATIVES names. It takes four
// minutes for each of them.
func TestLAMMPSAlternatives(t *testing.T) {
	names := chosenProteins(t, "CGIDP_LAMMPS_ALTERNATIVES")
	pinToOneCore(t)
	for _, name := range names {
		fmt.Printf("%s:\n\n%s\n", name, alternativesTable(t, equilibrated(t, name, 600)))
	}
}

// lammpsAlternatives differ from fastLAMMPS in one setting each.
func lammpsAlternatives() []lammpsSettings {
	var all []lammpsSettings
	add := func(change func(*lammpsSettings)) {
		s := fastLAMMPS
		change(&s)
		all = append(all, s)
	}
	add(func(s *lammpsSettings) { s.style, s.size = "exact", 0 })
	for _, bits := range []int{8, 10, 11, 12} {
		add(func(s *lammpsSettings) { s.size = bits })
	}
	for _, style := range []string{"linear", "lookup", "spline"} {
		for _, entries := range []int{1000, 8000} {
			add(func(s *lammpsSettings) { s.style, s.size = style, entries })
		}
	}
	for _, skin := range []float64{0.3, 0.5, 0.6, 0.8} {
		add(func(s *lammpsSettings) { s.skin = skin })
	}
	for _, every := range []int{1, 5, 20} {
		add(func(s *lammpsSettings) { s.every = every })
	}
	add(func(s *lammpsSettings) { s.lists = "bin" })
	add(func(s *lammpsSettings) { s.newton = "off" })
	return all
}

// alternative is a setting with its results.
type alternative struct {
	lammpsSettings
	program *lammps
	ratios  []float64 // speed by that of fastLAMMPS in the same round
	wrong   float64   // energy of the first step minus the exact one, kJ/mol
	late    bool
}

func alternativesTable(t *testing.T, d *Dynamics) string {
	t.Helper()
	fast := newLAMMPS(t, d.model, fastLAMMPS)
	var all []*alternative
	for _, s := range lammpsAlternatives() {
		all = append(all, &alternative{lammpsSettings: s, program: newLAMMPS(t, d.model, s)})
	}
	steps := 6_000_000 / len(d.x)
	for round := range 3 {
		for _, a := range all {
			a.round(t, fast, d, steps, round)
		}
		advance(t, d, steps)
	}
	rows := []string{"| settings | speed by that of the chosen ones | error of the energy / kJ/mol | |", "|---|---|---|---|"}
	for _, a := range all {
		rows = append(rows, a.row())
	}
	return strings.Join(rows, "\n")
}

func (a *alternative) round(t *testing.T, fast *lammps, d *Dynamics, steps, round int) {
	t.Helper()
	seed := []string{"-var", "seed", strconv.Itoa(round + 1)}
	own := a.program.run(t, d, steps, seed...)
	a.ratios = append(a.ratios, fast.run(t, d, steps, seed...).seconds/own.seconds)
	a.wrong = own.total - d.field.energy(d.x).total()
	a.late = a.late || own.late
}

func (a *alternative) row() string {
	note := ""
	if a.late {
		note = "misses pairs"
	}
	return fmt.Sprintf("| %v | %.2f | %.0e | %s |", a.lammpsSettings, median(a.ratios), a.wrong, note)
}
