package content

import "math"

const (
	nearest  = 0.5     // minimum distance between atoms in Å
	mostSeen = 100_000 // maximum number of atoms compared per structure
)

// clashDetector detects polymer atoms that are closer together than physically possible. Programs
// accept such structures, but their results are meaningless.
type clashDetector struct {
	at          map[[3]int32][3]float64 // one atom per grid cell
	seen, close int
}

func (c *clashDetector) add(place [3]float64) {
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

// near reports whether there is an atom close to place, in its cell or an adjacent one.
func (c *clashDetector) near(cell [3]int32, place [3]float64) bool {
	for i := range int32(27) {
		other, ok := c.at[[3]int32{cell[0] + i%3 - 1, cell[1] + i/3%3 - 1, cell[2] + i/9 - 1}]
		if ok && math.Hypot(math.Hypot(place[0]-other[0], place[1]-other[1]), place[2]-other[2]) < nearest {
			return true
		}
	}
	return false
}

// tooClose reports whether more than one atom in ten is too close to another one. A few
// such atoms occur in experimental and deliberately perturbed structures.
func (c *clashDetector) tooClose() bool { return c.close > max(1, c.seen/10) }
