package md

import (
	"math"
	"math/rand/v2"
)

// thermostat holds the factors by which the integrator multiplies forces and random
// numbers.
type thermostat struct {
	kick  []float64 // dt/m per bead
	noise []float64 // standard deviation of the random velocity per step, per bead
	decay float64   // factor by which friction reduces the velocity per step
}

// newThermostat returns a thermostat with friction in 1/ps.
func newThermostat(m *Model, friction float64) thermostat {
	t := thermostat{
		kick:  make([]float64, m.Size()),
		noise: make([]float64, m.Size()),
		decay: Exp(-friction * TimeStep),
	}
	for i, mass := range m.mass {
		t.kick[i] = TimeStep / mass
		t.noise[i] = math.Sqrt(m.kT * (1 - t.decay*t.decay) / mass)
	}
	return t
}

// push advances a bead by one integration step, given its force and three normal random
// numbers.
func (t *thermostat) push(bead int, x, v, force Vec, r *[3]float64) (nextX, nextV Vec) {
	const half = TimeStep / 2
	u := v.AddScaled(t.kick[bead], force)
	b := t.noise[bead]
	w := Vec{t.decay*u.X + b*r[0], t.decay*u.Y + b*r[1], t.decay*u.Z + b*r[2]}
	return x.AddScaled(half, u).AddScaled(half, w), w
}

// drawVelocities draws velocities from the Maxwell–Boltzmann distribution.
func (m *Model) drawVelocities(v []Vec, rng *rand.Rand) {
	for i := range v {
		width := math.Sqrt(m.kT / m.mass[i])
		v[i] = Vec{width * rng.NormFloat64(), width * rng.NormFloat64(), width * rng.NormFloat64()}
	}
}
