package md

import "math"

// Sums over all pairs and bonds of a mixture.
type Sums struct {
	Bond, Stick, Screen float64 // energies, kJ/mol
	Virial              float64 // sum of forces times separations, kJ/mol
}

// Energy is the potential energy in kJ/mol.
func (s Sums) Energy() float64 { return s.Bond + s.Stick + s.Screen }

// Sums evaluates the exact potentials for the present positions.
func (d *Motion) Sums() Sums {
	n := len(d.stick.domain)
	parts := make([]Sums, n+len(d.screen.domain)+d.mix.Chains())
	d.team.Each(len(parts), func(_, task int) {
		switch {
		case task < n:
			parts[task] = d.stickSums(&d.stick.domain[task])
		case task < n+len(d.screen.domain):
			parts[task] = d.screenSums(&d.screen.domain[task-n])
		default:
			parts[task] = bondSums(Of(d.mix, d.x, task-n-len(d.screen.domain)))
		}
	})
	var s Sums
	for _, p := range parts {
		s.Bond += p.Bond
		s.Stick += p.Stick
		s.Screen += p.Screen
		s.Virial += p.Virial
	}
	return s
}

func bondSums(x []Vec) Sums {
	var s Sums
	for i := 0; i+1 < len(x); i++ {
		r := x[i].Sub(x[i+1]).Norm()
		s.Bond += bondStiffness / 2 * (r - bondLength) * (r - bondLength)
		s.Virial -= bondStiffness * (r - bondLength) * r
	}
	return s
}

// stickSums takes the type of a bead from its group.
func (d *Motion) stickSums(domain *domain) Sums {
	var s Sums
	for i, j := range domain.all() {
		a, lane, from := d.stick.bead(d, domain, i)
		b, other, to := d.stick.bead(d, domain, j)
		r2 := from.Sub(to).Norm2()
		if r2 >= stickCutoff*stickCutoff {
			continue
		}
		pair := &d.mix.shared.stick[a.kind(d.mix, lane)][b.kind(d.mix, other)]
		s.Stick += pair.energy(r2)
		s.Virial += stickForce(r2, a.p[lane]+b.p[other], a.q[lane]+b.q[other]) * r2
	}
	return s
}

func (d *Motion) screenSums(domain *domain) Sums {
	var s Sums
	shared := d.mix.shared
	for i, j := range domain.all() {
		a, lane, from := d.screen.bead(d, domain, i)
		b, other, to := d.screen.bead(d, domain, j)
		r2 := from.Sub(to).Norm2()
		if r2 >= chargeCutoff*chargeCutoff {
			continue
		}
		strength := a.p[lane] * b.q[other]
		s.Screen += screenedEnergy(strength, shared.kappa, math.Sqrt(r2))
		s.Virial += strength * shared.screen.forceOverR(r2) * r2
	}
	return s
}

// bead returns the group and lane of a bead of a domain, and its exact position.
func (d *domains) bead(m *Motion, domain *domain, i int) (g *group, lane int, at Vec) {
	g, shift := domain.source(d, i/quadSize)
	lane = i % quadSize
	return g, lane, Of(m.mix, m.x, int(g.chain))[g.beads[lane]].AddScaled(1, shift)
}

// kind is the type of a bead.
func (g *group) kind(m *Mixture, lane int) uint8 { return m.model[g.chain].types[g.beads[lane]] }
