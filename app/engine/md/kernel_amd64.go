package md

import "golang.org/x/sys/cpu"

// CPU features that the operating system supports.
var (
	hasAVX2   = cpu.X86.HasAVX2
	hasAVX512 = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL
)

// addAshbaughHatch adds Ashbaugh–Hatch forces.
func addAshbaughHatch(quads []quad, list *pairList) {
	switch {
	case len(list.tiles) == 0:
	case hasAVX512:
		avx512AshbaughHatch(&quads[0], &list.start[0], &list.tiles[0], list.rows())
	case hasAVX2:
		avx2AshbaughHatch(&quads[0], &list.start[0], &list.tiles[0], list.rows())
	default:
		portableAshbaughHatch(quads, list)
	}
}

// addDebyeHueckel adds Debye–Hückel forces.
func addDebyeHueckel(quads []quad, list *pairList, table *debyeHueckelTable) {
	switch {
	case len(list.tiles) == 0:
	case hasAVX512:
		avx512DebyeHueckel(&quads[0], &list.start[0], &list.tiles[0], list.rows(), table)
	case hasAVX2:
		avx2DebyeHueckel(&quads[0], &list.start[0], &list.tiles[0], list.rows(), table)
	default:
		portableDebyeHueckel(quads, list, table)
	}
}

// avx2AshbaughHatch is portableAshbaughHatch for a non-empty list.
//
//go:noescape
func avx2AshbaughHatch(quads *quad, start *int32, tiles *tile, rows int)

// avx2DebyeHueckel is portableDebyeHueckel for a non-empty list.
//
//go:noescape
func avx2DebyeHueckel(quads *quad, start *int32, tiles *tile, rows int, table *debyeHueckelTable)

// avx512AshbaughHatch is portableAshbaughHatch for a non-empty list.
//
//go:noescape
func avx512AshbaughHatch(quads *quad, start *int32, tiles *tile, rows int)

// avx512DebyeHueckel is portableDebyeHueckel for a non-empty list.
//
//go:noescape
func avx512DebyeHueckel(quads *quad, start *int32, tiles *tile, rows int, table *debyeHueckelTable)
