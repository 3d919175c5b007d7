package md

// quadSize is the number of beads that the inner loops process at once: the number of
// float64 values in a 256-bit vector register.
const quadSize = 4

// quad holds four consecutive beads in the layout of the inner loops. The last quad of a
// chain can have unused lanes.
type quad struct {
	x, y, z    [quadSize]float64 // nm
	p, q       [quadSize]float64 // force parameters, see halfAshbaughHatch and newField
	fx, fy, fz [quadSize]float64 // force, kJ/mol/nm
}

// bead returns the quad and the lane of a bead.
func bead(quads []quad, i int) (*quad, int) { return &quads[i/quadSize], i % quadSize }

// newQuads returns the quads for a number of beads.
func newQuads(beads int) []quad { return make([]quad, (beads+quadSize-1)/quadSize) }

func (q *quad) setPosition(lane int, at Vec) {
	q.x[lane], q.y[lane], q.z[lane] = at.X, at.Y, at.Z
}

func (q *quad) position(lane int) Vec { return Vec{q.x[lane], q.y[lane], q.z[lane]} }

func (q *quad) setForce(lane int, force Vec) {
	q.fx[lane], q.fy[lane], q.fz[lane] = force.X, force.Y, force.Z
}

func (q *quad) force(lane int) Vec { return Vec{q.fx[lane], q.fy[lane], q.fz[lane]} }
