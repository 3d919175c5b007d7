package md

import (
	"math"
	"math/rand/v2"
)

const (
	walkAttempts = 50 // directions tried for a bead before backtracking
	walkRetreat  = 10 // beads removed when backtracking
)

// walk returns a self-avoiding random walk with steps of one bond length. Beads that are
// not bonded to each other do not overlap.
func walk(m *Model, rng *rand.Rand) []Vec {
	x := make([]Vec, 1, m.Size())
	failed := 0
	for len(x) < m.Size() {
		next := x[len(x)-1].AddScaled(bondLength, direction(rng))
		if m.fits(x, next) {
			x = append(x, next)
			failed = 0
			continue
		}
		if failed++; failed == walkAttempts {
			x = x[:max(1, len(x)-walkRetreat)]
			failed = 0
		}
	}
	return x
}

// shake displaces every bead at random, so that bond lengths have their thermal variance,
// kT over the stiffness, half of it from each end. If all bonds were at their minimum,
// chains would start with too little energy and stay cold for the relaxation time of the
// thermostat.
func (m *Model) shake(x []Vec, rng *rand.Rand) {
	width := math.Sqrt(m.kT / bondStiffness / 2)
	for i := range x {
		x[i] = x[i].AddScaled(width, Vec{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()})
	}
}

// direction returns a random unit vector, uniform on the sphere.
func direction(rng *rand.Rand) Vec {
	for {
		d := Vec{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		if length := d.Norm(); length > 1e-6 {
			return Vec{}.AddScaled(1/length, d)
		}
	}
}

// fits reports whether the next bead overlaps with no bead of x, not counting the last
// one, to which it will be bonded.
func (m *Model) fits(x []Vec, next Vec) bool {
	sigma := residues[m.types[len(x)]].sigma
	for j := 0; j < len(x)-1; j++ {
		apart := (sigma + residues[m.types[j]].sigma) / 2
		if x[j].Sub(next).Norm2() < apart*apart {
			return false
		}
	}
	return true
}
