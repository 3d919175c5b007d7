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
	for i, j := range domain.near.all() {
		a, b := d.stick.bead(d, domain, i), d.stick.bead(d, domain, j)
		r2 := a.at.Sub(b.at).Norm2()
		if r2 >= stickCutoff*stickCutoff {
			continue
		}
		pair := &d.mix.shared.stick[a.kind(d.mix)][b.kind(d.mix)]
		s.Stick += pair.energy(r2)
		s.Virial += stickForce(r2, a.p[a.lane]+b.p[b.lane], a.q[a.lane]+b.q[b.lane]) * r2
	}
	return s
}

func (d *Motion) screenSums(domain *domain) Sums {
	var s Sums
	shared := d.mix.shared
	for i, j := range domain.near.all() {
		a, b := d.screen.bead(d, domain, i), d.screen.bead(d, domain, j)
		r2 := a.at.Sub(b.at).Norm2()
		if r2 >= chargeCutoff*chargeCutoff {
			continue
		}
		strength := a.p[a.lane] * b.q[b.lane]
		s.Screen += screenedEnergy(strength, shared.kappa, math.Sqrt(r2))
		s.Virial += strength * shared.screen.forceOverR(r2) * r2
	}
	return s
}

// site is a bead of a domain.
type site struct {
	*group
	*parameters
	lane int
	at   Vec // nm, exact
}

func (d *domains) bead(m *Motion, domain *domain, i int) site {
	k, shift := domain.source(d, i/quadSize)
	s := site{group: &d.groups[k], parameters: &d.params[k], lane: i % quadSize}
	s.at = Of(m.mix, m.x, int(s.chain))[s.beads[s.lane]].AddScaled(1, shift)
	return s
}

// kind is the type of the bead.
func (s *site) kind(m *Mixture) uint8 { return m.model[s.chain].types[s.beads[s.lane]] }
