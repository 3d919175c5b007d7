package cgidp

import "math"

// centre of mass, in nm.
func (m *model) centre(x []vec) vec {
	var c vec
	for i := range x {
		c = c.plus(m.mass[i], x[i])
	}
	return vec{}.plus(1/m.totalMass(), c)
}

// gyrationRadius is mass-weighted, in nm.
func (m *model) gyrationRadius(x []vec) float64 {
	c := m.centre(x)
	moment := 0.0
	for i := range x {
		moment += m.mass[i] * x[i].sub(c).norm2()
	}
	return math.Sqrt(moment / m.totalMass())
}

// endToEnd is the distance of the first from the last bead, in nm.
func endToEnd(x []vec) float64 { return x[len(x)-1].sub(x[0]).norm() }
