package md

import "math"

// plainPair is the interaction of two beads by the formulas: it shares only parameters with
// the engine.
type plainPair struct {
	sigma, lambda   float64
	strength, kappa float64 // lBkT q q and 1/Debye length
}

func newPlainPair(m *Model, a, b uint8, charges float64) plainPair {
	ra, rb := residues[a], residues[b]
	return plainPair{
		sigma:    (ra.sigma + rb.sigma) / 2,
		lambda:   (ra.lambda + rb.lambda) / 2,
		strength: m.lBkT * charges,
		kappa:    m.kappa,
	}
}

func (p plainPair) minimum() float64 { return math.Pow(2, 1.0/6) * p.sigma }

func (p plainPair) lennardJones(r float64) (energy, force float64) {
	s6 := math.Pow(p.sigma/r, 6)
	return 4 * 0.8368 * (s6*s6 - s6), 24 * 0.8368 * (2*s6*s6 - s6) / r
}

// stick is the Ashbaugh-Hatch energy and force, positive if the beads repel each other.
func (p plainPair) stick(r float64) (energy, force float64) {
	if r >= 2 {
		return 0, 0
	}
	end, _ := p.lennardJones(2)
	energy, force = p.lennardJones(r)
	if r <= p.minimum() {
		return energy + 0.8368*(1-p.lambda) - p.lambda*end, force
	}
	return p.lambda * (energy - end), p.lambda * force
}

// screen is the same for Debye-Hückel.
func (p plainPair) screen(r float64) (energy, force float64) {
	if r >= 4 || p.strength == 0 {
		return 0, 0
	}
	u := p.strength * math.Exp(-p.kappa*r) / r
	return u - p.strength*math.Exp(-p.kappa*4)/4, u * (p.kappa + 1/r)
}

// plainSums are those over all pairs of beads with the nearest image of each, and the forces
// that follow. With a table, Debye-Hückel forces are taken from it.
func plainSums(m *Mixture, x []Vec, table *screenTable) (Sums, []Vec) {
	var s Sums
	force := make([]Vec, len(x))
	chainOf, local := make([]int, len(x)), make([]int, len(x))
	for chain := range m.Chains() {
		from, to := m.Span(chain)
		for i := from; i < to; i++ {
			chainOf[i], local[i] = chain, i-from
		}
	}
	for i := range x {
		for j := i + 1; j < len(x); j++ {
			a, b := m.model[chainOf[i]], m.model[chainOf[j]]
			d, w := m.Image(x[i].Sub(x[j])), 0.0
			if chainOf[i] == chainOf[j] && local[j] == local[i]+1 {
				d = x[i].Sub(x[j])
				r := d.Norm()
				w = 8033 * (0.38 - r) / r
				s.Bond += 8033. / 2 * (r - 0.38) * (r - 0.38)
			} else if r := d.Norm(); r < 4 {
				pair := newPlainPair(m.shared, a.types[local[i]], b.types[local[j]], a.charge[local[i]]*b.charge[local[j]])
				stick, stickForce := pair.stick(r)
				screen, screenForce := pair.screen(r)
				if table != nil {
					screenForce = pair.strength * table.forceOverR(r*r) * r
				}
				s.Stick, s.Screen = s.Stick+stick, s.Screen+screen
				w = (stickForce + screenForce) / r
			}
			force[i] = force[i].AddScaled(w, d)
			force[j] = force[j].AddScaled(-w, d)
			s.Virial += w * d.Norm2()
		}
	}
	return s, force
}

// chainSums are those of one chain.
func chainSums(m *Model, x []Vec, table *screenTable) (Sums, []Vec) {
	return plainSums(NewMixture([]Component{{m, 1}}, Vec{1e6, 1e6, 1e6}), x, table)
}
