package md

import (
	"strings"
	"testing"

	"molrun/app/test/enginetest"
)

// denseBeads is the number of beads per nm³ in the dense phase of slabProtein.
const denseBeads = 2.53

// slabProtein returns the model of P12035_1_202, which condenses strongly.
func slabProtein(t testing.TB) *Model {
	t.Helper()
	for _, p := range enginetest.Coexistences(t) {
		if strings.HasPrefix(p.Name, "P12035") {
			return NewModel(p.Sequence, in(p.Temperature, p.PH, p.IonicStrength))
		}
	}
	t.Fatal("no such protein")
	return nil
}

// dense fills a periodic box of the given width with chains at the density of the dense
// phase: it packs them more loosely, then shrinks the box along z in small steps.
func dense(t testing.TB, model *Model, copies int, wide float64) (x []Vec, height float64) {
	t.Helper()
	const packed, shrink, relax = 1.6, 0.99, 20
	beads := float64(copies * model.Size())
	height = beads / packed / wide / wide
	mixture := func() *Mixture { return NewMixture([]Component{{model, copies}}, Vec{wide, wide, height}) }
	d := setOut(t, mixture(), 1)
	for final := beads / denseBeads / wide / wide; height > final; {
		next := max(final, height*shrink)
		lower(d.mix, d.x, 1-next/height)
		height = next
		d = startedAt(t, mixture(), d.x, 1)
		d.advance(t, relax)
	}
	d.advance(t, 20*relax)
	return d.x, height
}

// lower shifts whole chains towards z = 0 by a fraction of the z coordinate of their
// center.
func lower(m *Mixture, x []Vec, part float64) {
	for chain := range m.Chains() {
		of := PartOf(m, x, chain)
		middle := 0.0
		for _, at := range of {
			middle += at.Z / float64(len(of))
		}
		for i := range of {
			of[i].Z -= part * middle
		}
	}
}

// slabOf returns a slab of copies of a protein. For 100 copies, the box is 15 nm wide and
// 150 nm long, like the published ones. The slab is stacked from equal boxes of the dense
// phase, in the middle of the box, where LAMMPS splits the box between two processes.
func slabOf(t testing.TB, copies, cores int) *Motion {
	t.Helper()
	model, wide, cell := slabProtein(t), 15., 25
	damped := *model
	damped.Friction = 2 // dissipates the heat of the initial overlaps
	if copies%cell != 0 {
		wide, cell = 9, copies
	}
	x, height := dense(t, &damped, cell, wide)
	stack := height * float64(copies/cell)
	box := Vec{wide, wide, max(1.5*float64(copies), 2*stack)}
	below := (box.Z - stack) / 2
	var all []Vec
	for k := range copies / cell {
		for _, at := range x {
			at.Z += below + height*float64(k)
			all = append(all, at)
		}
	}
	relaxed := startedAt(t, NewMixture([]Component{{&damped, copies}}, box), all, cores)
	relaxed.advance(t, 40)
	d := startedAt(t, NewMixture([]Component{{model, copies}}, box), relaxed.x, cores)
	d.advance(t, 20)
	return d
}

// with returns the same slab with another number of workers.
func (d *Motion) with(t testing.TB, cores int) *Motion {
	t.Helper()
	state := NewArchive(nil)
	d.Archive(state)
	return resumed(t, d.mix, state, cores)
}
