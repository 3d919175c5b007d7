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
			parts[task] = bondSums(PartOf(d.mix, d.x, task-n-len(d.screen.domain)))
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

func (d *Motion) stickSums(domain *domain) Sums {
	var s Sums
	sites := d.stick.sites(d, domain)
	for i, j := range domain.near.all() {
		a, b := &sites[i], &sites[j]
		r2 := a.at.Sub(b.at).Norm2()
		if r2 >= stickCutoff*stickCutoff {
			continue
		}
		s.Stick += d.mix.shared.stick[a.kind][b.kind].energy(r2)
		s.Virial += stickForce(r2, a.p+b.p, a.q+b.q) * r2
	}
	return s
}

func (d *Motion) screenSums(domain *domain) Sums {
	var s Sums
	shared, sites := d.mix.shared, d.screen.sites(d, domain)
	for i, j := range domain.near.all() {
		a, b := &sites[i], &sites[j]
		r2 := a.at.Sub(b.at).Norm2()
		if r2 >= chargeCutoff*chargeCutoff {
			continue
		}
		strength := a.p * b.q
		s.Screen += screenedEnergy(strength, shared.kappa, math.Sqrt(r2))
		s.Virial += strength * shared.screen.forceOverR(r2) * r2
	}
	return s
}

// site is a bead of a domain.
type site struct {
	at   Vec     // nm, exact
	p, q float64 // parameters of the force
	kind uint8   // of residue
}

// sites are the beads of a domain in the order in which its pairs count them.
func (d *domains) sites(m *Motion, domain *domain) []site {
	n := len(domain.own) + len(domain.halo)
	all := make([]site, 0, n*quadSize)
	for local := range n {
		k, shift := domain.source(d, local)
		g, params := &d.groups[k], &d.params[k]
		x, types := PartOf(m.mix, m.x, int(g.chain)), m.mix.model[g.chain].types
		for lane, bead := range g.beads {
			all = append(all, site{x[bead].AddScaled(1, shift), params.p[lane], params.q[lane], types[bead]})
		}
	}
	return all
}
