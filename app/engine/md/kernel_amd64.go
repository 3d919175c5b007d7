package md

import "golang.org/x/sys/cpu"

// What this processor and its operating system support.
var (
	hasAVX2   = cpu.X86.HasAVX2
	hasAVX512 = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL
)

// addStick adds Ashbaugh-Hatch forces.
func addStick(quads []quad, list *pairList) {
	switch {
	case len(list.tiles) == 0:
	case hasAVX512:
		avx512Stick(&quads[0], &list.start[0], &list.tiles[0], list.rows())
	case hasAVX2:
		avx2Stick(&quads[0], &list.start[0], &list.tiles[0], list.rows())
	default:
		portableStick(quads, list)
	}
}

// addScreen adds Debye-Hückel forces.
func addScreen(quads []quad, list *pairList, table *screenTable) {
	switch {
	case len(list.tiles) == 0:
	case hasAVX512:
		avx512Screen(&quads[0], &list.start[0], &list.tiles[0], list.rows(), table)
	case hasAVX2:
		avx2Screen(&quads[0], &list.start[0], &list.tiles[0], list.rows(), table)
	default:
		portableScreen(quads, list, table)
	}
}

// avx2Stick is portableStick for a list that is not empty.
//
//go:noescape
func avx2Stick(quads *quad, start *int32, tiles *tile, rows int)

// avx2Screen is portableScreen for a list that is not empty.
//
//go:noescape
func avx2Screen(quads *quad, start *int32, tiles *tile, rows int, table *screenTable)

// avx512Stick is portableStick for a list that is not empty.
//
//go:noescape
func avx512Stick(quads *quad, start *int32, tiles *tile, rows int)

// avx512Screen is portableScreen for a list that is not empty.
//
//go:noescape
func avx512Screen(quads *quad, start *int32, tiles *tile, rows int, table *screenTable)
