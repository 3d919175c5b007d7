package md

import "molrun/app/test/enginetest"

// plainPair returns the pair potential of the tests, which shares only parameters with
// the engine.
func plainPair(m *Model, a, b uint8, charges float64) enginetest.Pair {
	ra, rb := residues[a], residues[b]
	return enginetest.Pair{
		Sigma: (ra.sigma + rb.sigma) / 2, Lambda: (ra.lambda + rb.lambda) / 2,
		Strength: m.lBkT * charges, Kappa: m.kappa,
	}
}

// plainSums returns the sums over all minimum-image pairs of beads, and the forces. If
// there is a table, Debye–Hückel forces are taken from it.
func plainSums(m *Mixture, x []Vec, table *debyeHueckelTable) (Sums, []Vec) {
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
			d, w := m.MinimumImage(x[i].Sub(x[j])), 0.0
			if chainOf[i] == chainOf[j] && local[j] == local[i]+1 {
				d = x[i].Sub(x[j])
				r := d.Norm()
				w = 8033 * (0.38 - r) / r
				s.Bond += 8033. / 2 * (r - 0.38) * (r - 0.38)
			} else if r := d.Norm(); r < 4 {
				pair := plainPair(m.shared, a.types[local[i]], b.types[local[j]], a.charge[local[i]]*b.charge[local[j]])
				ashbaughHatch, ashbaughHatchForce := pair.AshbaughHatch(r)
				debyeHueckel, debyeHueckelForce := pair.DebyeHueckel(r)
				if table != nil {
					debyeHueckelForce = pair.Strength * table.forceOverR(r*r) * r
				}
				s.AshbaughHatch, s.DebyeHueckel = s.AshbaughHatch+ashbaughHatch, s.DebyeHueckel+debyeHueckel
				w = (ashbaughHatchForce + debyeHueckelForce) / r
			}
			force[i] = force[i].AddScaled(w, d)
			force[j] = force[j].AddScaled(-w, d)
			s.Virial += w * d.Norm2()
		}
	}
	return s, force
}

// chainSums is plainSums for one chain.
func chainSums(m *Model, x []Vec, table *debyeHueckelTable) (Sums, []Vec) {
	return plainSums(NewMixture([]Component{{m, 1}}, Vec{1e6, 1e6, 1e6}), x, table)
}
