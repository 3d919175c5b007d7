package md

import (
	"cmp"
	"math"
	"slices"
)

// cells is a cell list of groups. It sorts groups by cell along one edge of the box, by
// row of cells along another edge, and by layer of rows along the longest. The rank of a
// group is its index in this order.
type cells struct {
	axes  [3]int     // of the box, longest edge last
	box   [3]float64 // nm, in the order of axes, like the fields below
	count [3]int     // cells along each edge
	edge  [3]float64 // nm
	start []int32    // first rank in each cell
	order []int32    // groups by rank
	kinds []int32    // by rank, see domains.kinOf

	// Bounding spheres of the groups by rank, padded for the vector loop.
	centre    [3][]float32
	radius    []float32
	maxRadius float64 // nm, largest radius
}

// wantedCell is the approximate cell edge in nm.
const wantedCell = 1.8

// newCells returns empty cells for a box.
func newCells(box Vec) cells {
	c := cells{axes: [3]int{0, 1, 2}}
	slices.SortStableFunc(c.axes[:], func(a, b int) int { return cmp.Compare(box.along(a), box.along(b)) })
	for k, axis := range c.axes {
		c.box[k] = box.along(axis)
		c.count[k] = max(1, int(c.box[k]/wantedCell))
		c.edge[k] = c.box[k] / float64(c.count[k])
	}
	c.start = make([]int32, c.count[0]*c.count[1]*c.count[2]+1)
	return c
}

// along returns the coordinate along an axis.
func (v Vec) along(axis int) float64 {
	switch axis {
	case 0:
		return v.X
	case 1:
		return v.Y
	}
	return v.Z
}

// sortGroups assigns the groups at spots to cells.
func (c *cells) sortGroups(spots []groupSphere, kinOf func(group int32) int32) {
	clear(c.start)
	c.maxRadius = 0
	in := make([]int32, len(spots))
	for k := range spots {
		s := &spots[k]
		c.maxRadius = max(c.maxRadius, s.radius)
		in[k] = c.cellOf(s.centre)
		c.start[in[k]+1]++
	}
	for k := range len(c.start) - 1 {
		c.start[k+1] += c.start[k]
	}
	n := len(spots)
	if c.order == nil {
		c.order, c.kinds = make([]int32, n), make([]int32, n)
		c.radius = make([]float32, n+ballsAtOnce)
		for axis := range c.centre {
			c.centre[axis] = make([]float32, n+ballsAtOnce)
		}
	}
	at := slices.Clone(c.start)
	for k := range spots {
		rank := at[in[k]]
		at[in[k]]++
		c.order[rank], c.kinds[rank] = int32(k), kinOf(int32(k))
		c.radius[rank] = float32(spots[k].radius)
		for place, axis := range c.axes {
			c.centre[place][rank] = float32(spots[k].centre.along(axis))
		}
	}
}

// cellOf returns the index of the cell that contains a position in the box.
func (c *cells) cellOf(at Vec) int32 {
	cell := 0
	for k := 2; k >= 0; k-- {
		// Rounding can put a position on the far edge.
		cell = cell*c.count[k] + max(0, min(c.count[k]-1, int(at.along(c.axes[k])/c.edge[k])))
	}
	return int32(cell)
}

// run is a range of ranks, from inclusive to exclusive, shifted by box edges.
type run struct {
	from, to int32
	edges    [3]int // number of box edges along each axis
}

// near appends runs that contain at least all groups within a distance of a position in
// the box.
func (c *cells) near(at Vec, distance float64, runs []run) []run {
	var p [3]float64
	for k, axis := range c.axes {
		p[k] = at.along(axis)
	}
	for z := c.low(2, p[2]-distance); z <= c.low(2, p[2]+distance); z++ {
		dz := outside(p[2], float64(z)*c.edge[2], c.edge[2])
		cz, sz := wrapped(z, c.count[2])
		for y := c.low(1, p[1]-distance); y <= c.low(1, p[1]+distance); y++ {
			dy := outside(p[1], float64(y)*c.edge[1], c.edge[1])
			left := distance*distance - dy*dy - dz*dz
			if left < 0 {
				continue
			}
			cy, sy := wrapped(y, c.count[1])
			row, half := (cz*c.count[1]+cy)*c.count[0], math.Sqrt(left)
			for x, last := c.low(0, p[0]-half), c.low(0, p[0]+half); x <= last; {
				cx, sx := wrapped(x, c.count[0])
				n := min(last-x+1, c.count[0]-cx)
				if r := (run{c.start[row+cx], c.start[row+cx+n], [3]int{sx, sy, sz}}); r.from < r.to {
					runs = append(runs, r)
				}
				x += n
			}
		}
	}
	return runs
}

// low returns the index of the cell that contains a coordinate; it can be outside the
// box.
func (c *cells) low(k int, v float64) int { return int(math.Floor(v / c.edge[k])) }

// shift returns the displacement by box edges.
func (c *cells) shift(edges [3]int) Vec {
	var v [3]float64
	for k, axis := range c.axes {
		v[axis] = float64(edges[k]) * c.box[k]
	}
	return Vec{v[0], v[1], v[2]}
}

// outside returns the distance of a coordinate from an interval.
func outside(v, low, length float64) float64 { return max(0, low-v, v-low-length) }

// wrapped returns the cell in the box that corresponds to a cell index outside, and how
// many boxes away it is.
func wrapped(cell, count int) (in, boxes int) {
	in = cell % count
	if in < 0 {
		in += count
	}
	return in, (cell - in) / count
}

// ballsAtOnce is the number of bounding spheres that the vector loop processes at once.
const ballsAtOnce = 8

// portableTouching appends the ranks of a run whose bounding spheres are within a
// distance of a position.
func (c *cells) portableTouching(r run, at [3]float32, distance float32, to []int32) []int32 {
	for k := r.from; k < r.to; k++ {
		x, y, z := c.centre[0][k]-at[0], c.centre[1][k]-at[1], c.centre[2][k]-at[2]
		if far := distance + c.radius[k]; (float32(x*x)+float32(y*y))+float32(z*z) < float32(far*far) {
			to = append(to, k)
		}
	}
	return to
}

// float32s returns the coordinates of a position, in the order of axes.
func (c *cells) float32s(at Vec) (v [3]float32) {
	for k, axis := range c.axes {
		v[k] = float32(at.along(axis))
	}
	return v
}
