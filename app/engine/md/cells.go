package md

import (
	"cmp"
	"math"
	"slices"
)

// cells sort groups spatially: by cell along one edge of the box, by row of cells along
// another edge, and by layer of rows along the longest. The rank of a group is its number
// in this order.
type cells struct {
	axes  [3]int     // of the box, the longest edge last
	box   [3]float64 // nm, in this order, as all that follows
	count [3]int     // of cells along each edge
	edge  [3]float64 // nm
	start []int32    // first rank in each cell
	order []int32    // groups by rank
	kin   []int32    // by rank, see domains.kinOf

	// Bounding spheres of the groups by rank, padded for the vector loop.
	centre [3][]float32
	radius []float32
	most   float64 // nm, largest radius
}

// wantedCell is about the edge of a cell in nm.
const wantedCell = 1.8

// newCells returns cells of a box.
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

// along is a coordinate.
func (v Vec) along(axis int) float64 {
	switch axis {
	case 0:
		return v.X
	case 1:
		return v.Y
	}
	return v.Z
}

// sortGroups sorts the groups at some places.
func (c *cells) sortGroups(spots []spot, kinOf func(group int32) int32) {
	clear(c.start)
	c.most = 0
	in := make([]int32, len(spots))
	for k := range spots {
		s := &spots[k]
		c.most = max(c.most, s.radius)
		in[k] = c.cellOf(s.centre)
		c.start[in[k]+1]++
	}
	for k := range len(c.start) - 1 {
		c.start[k+1] += c.start[k]
	}
	n := len(spots)
	if c.order == nil {
		c.order, c.kin = make([]int32, n), make([]int32, n)
		c.radius = make([]float32, n+ballsAtOnce)
		for axis := range c.centre {
			c.centre[axis] = make([]float32, n+ballsAtOnce)
		}
	}
	at := slices.Clone(c.start)
	for k := range spots {
		rank := at[in[k]]
		at[in[k]]++
		c.order[rank], c.kin[rank] = int32(k), kinOf(int32(k))
		c.radius[rank] = float32(spots[k].radius)
		for place, axis := range c.axes {
			c.centre[place][rank] = float32(spots[k].centre.along(axis))
		}
	}
}

// cellOf is the number of the cell of a place in the box.
func (c *cells) cellOf(at Vec) int32 {
	cell := 0
	for k := 2; k >= 0; k-- {
		// Rounding may have put a place on the far edge.
		cell = cell*c.count[k] + max(0, min(c.count[k]-1, int(at.along(c.axes[k])/c.edge[k])))
	}
	return int32(cell)
}

// run is groups of ranks from one to before another, moved by edges of the box.
type run struct {
	from, to int32
	edges    [3]int // how many of each
}

// near appends the runs that hold all groups that come within a distance of a place in the
// box, and others.
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

// low is the number of the cell of a coordinate, which may be outside of the box.
func (c *cells) low(k int, v float64) int { return int(math.Floor(v / c.edge[k])) }

// shift is what edges of the box add to positions.
func (c *cells) shift(edges [3]int) Vec {
	var v [3]float64
	for k, axis := range c.axes {
		v[axis] = float64(edges[k]) * c.box[k]
	}
	return Vec{v[0], v[1], v[2]}
}

// outside is how far a coordinate is from an interval.
func outside(v, low, length float64) float64 { return max(0, low-v, v-low-length) }

// wrapped returns the cell that a number outside of the box stands for, and how many
// boxes away it is.
func wrapped(cell, count int) (in, boxes int) {
	in = cell % count
	if in < 0 {
		in += count
	}
	return in, (cell - in) / count
}

// ballsAtOnce is how many the vector loop looks at.
const ballsAtOnce = 8

// portableTouching appends the ranks of a run whose balls come within a distance of a
// place.
func (c *cells) portableTouching(r run, at [3]float32, distance float32, to []int32) []int32 {
	for k := r.from; k < r.to; k++ {
		x, y, z := c.centre[0][k]-at[0], c.centre[1][k]-at[1], c.centre[2][k]-at[2]
		if far := distance + c.radius[k]; (float32(x*x)+float32(y*y))+float32(z*z) < float32(far*far) {
			to = append(to, k)
		}
	}
	return to
}

// float32s are the coordinates of a place.
func (c *cells) float32s(at Vec) (v [3]float32) {
	for k, axis := range c.axes {
		v[k] = float32(at.along(axis))
	}
	return v
}
