package cgidp

import "math/rand/v2"

const (
	walkTries   = 50 // directions tried for a bead before going back
	walkRetreat = 10 // beads taken away then
)

// walk returns a self-avoiding random walk: steps of one bond length, no bead
// closer than its diameter to any but its neighbours.
func walk(m *model, rng *rand.Rand) []vec {
	x := make([]vec, 1, m.size())
	tries := 0
	for len(x) < m.size() {
		next := x[len(x)-1].plus(bondLength, direction(rng))
		if m.fits(x, next) {
			x = append(x, next)
			tries = 0
			continue
		}
		if tries++; tries == walkTries {
			x = x[:max(1, len(x)-walkRetreat)]
			tries = 0
		}
	}
	return x
}

// direction is uniform on the unit sphere.
func direction(rng *rand.Rand) vec {
	for {
		d := vec{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		if length := d.norm(); length > 1e-6 {
			return vec{}.plus(1/length, d)
		}
	}
}

// fits tells whether the next bead clears all of x but the last one.
func (m *model) fits(x []vec, next vec) bool {
	sigma := residues[m.types[len(x)]].sigma
	for j := 0; j < len(x)-1; j++ {
		apart := (sigma + residues[m.types[j]].sigma) / 2
		if x[j].sub(next).norm2() < apart*apart {
			return false
		}
	}
	return true
}
