package md

import (
	"slices"
	"testing"
)

func vectorLoops() []loops {
	var all []loops
	add := func(name string,
		stick func(*quad, *int32, *tile, int),
		screen func(*quad, *int32, *tile, int, *screenTable),
	) {
		all = append(all, loops{
			name,
			func(quads []quad, l *pairList) { stick(&quads[0], &l.start[0], &l.tiles[0], l.rows()) },
			func(quads []quad, l *pairList, table *screenTable) {
				screen(&quads[0], &l.start[0], &l.tiles[0], l.rows(), table)
			},
		})
	}
	if hasAVX2 {
		add("AVX2", avx2Stick, avx2Screen)
	}
	if hasAVX512 {
		add("AVX-512", avx512Stick, avx512Screen)
	}
	return all
}

// Whatever the processor has, the same loops are run for both kinds of pairs, and the
// forces are the same.
func TestForcesDoNotDependOnTheProcessor(t *testing.T) {
	with512, with2 := hasAVX512, hasAVX2
	t.Cleanup(func() { hasAVX512, hasAVX2 = with512, with2 })
	m := referenceModel(t, "DSS1")
	x := spiral(m.Size())
	hasAVX512, hasAVX2 = false, false
	plain := newField(m)
	plain.compute(x)
	for name, has := range map[string][2]bool{"AVX-512": {true, true}, "AVX2": {false, true}} {
		if has[0] && !with512 || has[1] && !with2 {
			continue
		}
		hasAVX512, hasAVX2 = has[0], has[1]
		f := newField(m)
		f.compute(x)
		if !slices.Equal(f.forces(), plain.forces()) {
			t.Errorf("with %s, forces differ", name)
		}
	}
	for i, want := range plainForces(m, x) {
		if off := plain.force(i).Sub(want).Norm(); off > 1e-9*(1+want.Norm()) {
			t.Errorf("bead %d: force %v, over all pairs %v", i, plain.force(i), want)
		}
	}
}

func hasVectorLoops32() bool { return hasAVX2 }
