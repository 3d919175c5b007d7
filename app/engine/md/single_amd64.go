package md

import (
	"slices"
	"unsafe"
)

// addAshbaughHatch32 adds Ashbaugh–Hatch forces.
func addAshbaughHatch32(quads []quad32, list *pairList) {
	switch {
	case len(list.tiles) == 0:
	case hasAVX2:
		avx2AshbaughHatch32(&quads[0], &list.start[0], &list.tiles[0], list.rows())
	default:
		portableAshbaughHatch32(quads, list)
	}
}

// addDebyeHueckel32 adds Debye–Hückel forces.
func addDebyeHueckel32(quads []quad32, list *pairList, table *debyeHueckelTable32) {
	switch {
	case len(list.tiles) == 0:
	case hasAVX2:
		avx2DebyeHueckel32(&quads[0], &list.start[0], &list.tiles[0], list.rows(), table)
	default:
		portableDebyeHueckel32(quads, list, table)
	}
}

// prune is portablePrune with vector instructions if available.
func prune(quads []quad32, list, to *pairList, reach2 float32) {
	if !hasAVX2 || len(list.tiles) == 0 {
		portablePrune(quads, list, to, reach2)
		return
	}
	rows := list.rows()
	to.start = slices.Grow(to.start[:0], rows+1)[:rows+1]
	to.tiles = slices.Grow(to.tiles[:0], len(list.tiles))[:len(list.tiles)]
	avx2Prune(&quads[0], &list.start[0], &list.tiles[0], rows, reach2, &to.start[0], &to.tiles[0])
	to.tiles = to.tiles[:to.start[rows]]
}

// touching is portableTouching with vector instructions if available.
func (c *cells) touching(r run, at Vec, distance float32, to []int32) []int32 {
	place := c.float32s(at)
	if !hasAVX2 {
		return c.portableTouching(r, place, distance, to)
	}
	to = slices.Grow(to, int(r.to-r.from))
	n := avx2Touching(&c.centre[0][r.from], &c.centre[1][r.from], &c.centre[2][r.from], &c.radius[r.from],
		int(r.to-r.from), &place, distance, r.from, unsafe.SliceData(to[len(to):cap(to)]))
	return to[:len(to)+n]
}

// avx2AshbaughHatch32 is portableAshbaughHatch32 for a non-empty list.
//
//go:noescape
func avx2AshbaughHatch32(quads *quad32, start *int32, tiles *tile, rows int)

// avx2DebyeHueckel32 is portableDebyeHueckel32 for a non-empty list.
//
//go:noescape
func avx2DebyeHueckel32(quads *quad32, start *int32, tiles *tile, rows int, table *debyeHueckelTable32)

// avx2Prune is portablePrune for a non-empty list. The destination must have capacity for
// all rows and tiles.
//
//go:noescape
func avx2Prune(quads *quad32, start *int32, tiles *tile, rows int, reach2 float32, toStart *int32, to *tile)

// avx2Touching writes the ranks of the spheres within a distance of a position, and
// returns their number. There must be at least one sphere; the ranks start at first.
//
//go:noescape
func avx2Touching(x, y, z, radius *float32, balls int, at *[3]float32, distance float32, first int32, to *int32) int
