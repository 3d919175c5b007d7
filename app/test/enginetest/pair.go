package enginetest

import "math"

// Pair computes the interaction of two beads directly from the formulas of the model.
type Pair struct {
	Sigma, Lambda   float64 // nm; dimensionless
	Strength, Kappa float64 // kJ/mol·nm for both charges; inverse Debye length in 1/nm
}

const epsilon = 0.8368 // kJ/mol

// Minimum returns the distance at the minimum of the Lennard-Jones potential.
func (p Pair) Minimum() float64 { return math.Pow(2, 1.0/6) * p.Sigma }

func (p Pair) lennardJones(r float64) (energy, force float64) {
	s6 := math.Pow(p.Sigma/r, 6)
	return 4 * epsilon * (s6*s6 - s6), 24 * epsilon * (2*s6*s6 - s6) / r
}

// AshbaughHatch returns the Ashbaugh–Hatch energy and force. A positive force is repulsive.
func (p Pair) AshbaughHatch(r float64) (energy, force float64) {
	if r >= 2 {
		return 0, 0
	}
	end, _ := p.lennardJones(2)
	energy, force = p.lennardJones(r)
	if r <= p.Minimum() {
		return energy + epsilon*(1-p.Lambda) - p.Lambda*end, force
	}
	return p.Lambda * (energy - end), p.Lambda * force
}

// DebyeHueckel returns the Debye–Hückel energy and force.
func (p Pair) DebyeHueckel(r float64) (energy, force float64) {
	if r >= 4 || p.Strength == 0 {
		return 0, 0
	}
	u := p.Strength * math.Exp(-p.Kappa*r) / r
	return u - p.Strength*math.Exp(-p.Kappa*4)/4, u * (p.Kappa + 1/r)
}
