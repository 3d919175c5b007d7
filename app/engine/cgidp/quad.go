package cgidp

// quadSize is how many beads the inner loops take at once: the numbers in a
// vector register of 256 bits.
const quadSize = 4

// quad holds four beads in a row, as the inner loops want them. The last one of a
// chain may have room left.
type quad struct {
	x, y, z    [quadSize]float64 // nm
	p, q       [quadSize]float64 // parameters of the force, see halfStick and newField
	fx, fy, fz [quadSize]float64 // force, kJ/mol/nm
}

// bead returns the quad and the lane of a bead.
func bead(quads []quad, i int) (*quad, int) { return &quads[i/quadSize], i % quadSize }

// newQuads has room for a number of beads.
func newQuads(beads int) []quad { return make([]quad, (beads+quadSize-1)/quadSize) }

func (q *quad) place(lane int, at vec) {
	q.x[lane], q.y[lane], q.z[lane] = at.X, at.Y, at.Z
}

func (q *quad) position(lane int) vec { return vec{q.x[lane], q.y[lane], q.z[lane]} }

func (q *quad) push(lane int, force vec) {
	q.fx[lane], q.fy[lane], q.fz[lane] = force.X, force.Y, force.Z
}

func (q *quad) force(lane int) vec { return vec{q.fx[lane], q.fy[lane], q.fz[lane]} }
