package content

import "math"

const (
	nearest  = 0.5     // Å, closer than which no two atoms are
	mostSeen = 100_000 // atoms of a structure that are compared with others
)

// crowd finds atoms of polymers that are nearer to another one than atoms can be. Programs
// compute with such structures, and their results mean nothing.
type crowd struct {
	at          map[[3]int32][3]float64 // an atom in each cell of a grid
	seen, close int
}

func (c *crowd) add(place [3]float64) {
	if c.seen == mostSeen {
		return
	}
	c.seen++
	var cell [3]int32
	for k, v := range place {
		cell[k] = int32(max(-1e9, min(1e9, math.Floor(v/nearest))))
	}
	if c.near(cell, place) {
		c.close++
		return
	}
	c.at[cell] = place
}

// near reports whether an atom is near the place, in its cell or in one beside it.
func (c *crowd) near(cell [3]int32, place [3]float64) bool {
	for i := range int32(27) {
		other, ok := c.at[[3]int32{cell[0] + i%3 - 1, cell[1] + i/3%3 - 1, cell[2] + i/9 - 1}]
		if ok && math.Hypot(math.Hypot(place[0]-other[0], place[1]-other[1]), place[2]-other[2]) < nearest {
			return true
		}
	}
	return false
}

// tooClose reports whether more than one in ten atoms is near another one. Some are in
// structures that were measured, or disturbed on purpose.
func (c *crowd) tooClose() bool { return c.close > max(1, c.seen/10) }
