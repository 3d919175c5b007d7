package md

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"molrun/app/test/enginetest"
)

// BenchmarkMotion times slabs. CPU time, of all cores together, suffers less than time from what else runs.
func BenchmarkMotion(b *testing.B) {
	for _, copies := range []int{10, 100, 500} {
		for _, cores := range []int{1, 2} {
			b.Run(fmt.Sprintf("beads=%d/cores=%d", 202*copies, cores), func(b *testing.B) {
				d := slabOf(b, copies, cores)
				b.ReportAllocs()
				start := userSeconds(b)
				for b.Loop() {
					d.advance(b, 1)
				}
				beadSteps := float64(b.N) * float64(d.mix.Size())
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
				b.ReportMetric(b.Elapsed().Seconds()/beadSteps*1e9, "ns/bead")
				b.ReportMetric((userSeconds(b)-start)/beadSteps*1e9, "cpu-ns/bead")
				b.ReportMetric(float64(d.stick.tileCount())/float64(d.mix.Size()), "stick-tiles/bead")
				near := 0
				for k := range d.stick.domain {
					near += len(d.stick.domain[k].near.tiles)
				}
				b.ReportMetric(float64(near)/float64(d.mix.Size()), "near-tiles/bead")
				b.ReportMetric(float64(d.screen.tileCount())/float64(d.mix.Size()), "screen-tiles/bead")
			})
		}
	}
}

func (d *domains) tileCount() (n int) {
	for k := range d.domain {
		n += len(d.domain[k].tiles)
	}
	return n
}

// denseBeads is how many beads a nm³ of the dense phase of slabProtein has.
const denseBeads = 2.53

// slabProtein condenses strongly: P12035_1_202.
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

// dense fills a periodic box of a width with chains at the density of the dense phase: they are packed more
// loosely, and then the box shrinks along z by a little at a time.
func dense(t testing.TB, model *Model, copies int, wide float64) (x []Vec, height float64) {
	t.Helper()
	const packed, shrink, relax = 1.6, 0.99, 20
	beads := float64(copies * model.Size())
	height = beads / packed / wide / wide
	team := NewTeam(1)
	defer team.Close()
	m := NewMixture([]Component{{model, copies}}, Vec{wide, wide, height})
	x, err := Pack(m, 1, 1, 0, height)
	if err != nil {
		t.Fatal(err)
	}
	for final := beads / denseBeads / wide / wide; height > final; {
		next := max(final, height*shrink)
		lower(m, x, 1-next/height)
		height = next
		m = NewMixture([]Component{{model, copies}}, Vec{wide, wide, height})
		x = moved(t, m, team, x, relax)
	}
	return moved(t, m, team, x, 20*relax), height
}

// moved returns positions after some steps.
func moved(t testing.TB, m *Mixture, team *Team, x []Vec, steps int) []Vec {
	t.Helper()
	d := NewMotion(m, team, 1, 1)
	if err := d.Start(x); err != nil {
		t.Fatal(err)
	}
	d.advance(t, steps)
	return d.x
}

// lower moves whole chains towards z = 0 by a part of the height of their middle.
func lower(m *Mixture, x []Vec, part float64) {
	for chain := range m.Chains() {
		of := Of(m, x, chain)
		middle := 0.0
		for _, at := range of {
			middle += at.Z / float64(len(of))
		}
		for i := range of {
			of[i].Z -= part * middle
		}
	}
}

// slabOf returns a slab of copies of a protein, 15 nm wide and in a box of 150 nm for 100 copies, as the
// published ones. It is in the middle of the box, where LAMMPS divides the box between two processes.
func slabOf(t testing.TB, copies, cores int) *Motion {
	t.Helper()
	return stackOf(t, copies, cores, func(height float64) float64 { return max(1.5*float64(copies), 2*height) })
}

// denseOf returns the dense phase alone, which fills its box.
func denseOf(t testing.TB, copies, cores int) *Motion {
	t.Helper()
	return stackOf(t, copies, cores, func(height float64) float64 { return height })
}

// stackOf returns equal boxes of the dense phase on each other, in the middle of a box whose length follows from
// the height of the stack.
func stackOf(t testing.TB, copies, cores int, length func(height float64) float64) *Motion {
	t.Helper()
	model, wide, cell := slabProtein(t), 15., 25
	damped := *model
	damped.Friction = 2 // takes away the heat of all that overlaps at first
	if copies%cell != 0 {
		wide, cell = 9, copies
	}
	x, height := dense(t, &damped, cell, wide)
	stack := height * float64(copies/cell)
	box := Vec{wide, wide, length(stack)}
	below := (box.Z - stack) / 2
	var all []Vec
	for k := range copies / cell {
		for _, at := range x {
			at.Z += below + height*float64(k)
			all = append(all, at)
		}
	}
	team := NewTeam(cores)
	t.Cleanup(team.Close)
	all = moved(t, NewMixture([]Component{{&damped, copies}}, box), team, all, 40)
	d := NewMotion(NewMixture([]Component{{model, copies}}, box), team, 1, 1)
	if err := d.Start(all); err != nil {
		t.Fatal(err)
	}
	d.advance(t, 20)
	return d
}

// heap is how much memory is in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// with returns the same slab with another number of workers.
func (d *Motion) with(t testing.TB, cores int) *Motion {
	t.Helper()
	state := &numbers{}
	d.Archive(state)
	team := NewTeam(cores)
	t.Cleanup(team.Close)
	other := NewMotion(d.mix, team, 1, 1)
	other.Archive(&numbers{left: state.written, reading: true})
	if err := other.Resume(); err != nil {
		t.Fatal(err)
	}
	return other
}
