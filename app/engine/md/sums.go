package md

import "math"

// Sums are sums over all pairs and bonds of a mixture.
type Sums struct {
	Bond, AshbaughHatch, DebyeHueckel float64 // energies, kJ/mol
	Virial                            float64 // sum of forces times separations, kJ/mol
}

// Energy returns the potential energy in kJ/mol.
func (s Sums) Energy() float64 { return s.Bond + s.AshbaughHatch + s.DebyeHueckel }

// Sums evaluates the exact potentials at the current positions.
func (d *Motion) Sums() Sums {
	n := len(d.ashbaughHatch.domain)
	parts := make([]Sums, n+len(d.debyeHueckel.domain)+d.mix.Chains())
	d.team.Each(len(parts), func(_, task int) {
		switch {
		case task < n:
			parts[task] = d.ashbaughHatchSums(&d.ashbaughHatch.domain[task])
		case task < n+len(d.debyeHueckel.domain):
			parts[task] = d.debyeHueckelSums(&d.debyeHueckel.domain[task-n])
		default:
			parts[task] = bondSums(PartOf(d.mix, d.x, task-n-len(d.debyeHueckel.domain)))
		}
	})
	var s Sums
	for _, p := range parts {
		s.Bond += p.Bond
		s.AshbaughHatch += p.AshbaughHatch
		s.DebyeHueckel += p.DebyeHueckel
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

func (d *Motion) ashbaughHatchSums(domain *domain) Sums {
	var s Sums
	sites := d.ashbaughHatch.sites(d, domain)
	for i, j := range domain.near.all() {
		a, b := &sites[i], &sites[j]
		r2 := a.at.Sub(b.at).Norm2()
		if r2 >= ashbaughHatchCutoff*ashbaughHatchCutoff {
			continue
		}
		s.AshbaughHatch += d.mix.shared.ashbaughHatch[a.kind][b.kind].energy(r2)
		s.Virial += ashbaughHatchForce(r2, a.p+b.p, a.q+b.q) * r2
	}
	return s
}

func (d *Motion) debyeHueckelSums(domain *domain) Sums {
	var s Sums
	shared, sites := d.mix.shared, d.debyeHueckel.sites(d, domain)
	for i, j := range domain.near.all() {
		a, b := &sites[i], &sites[j]
		r2 := a.at.Sub(b.at).Norm2()
		if r2 >= chargeCutoff*chargeCutoff {
			continue
		}
		strength := a.p * b.q
		s.DebyeHueckel += debyeHueckelEnergy(strength, shared.kappa, math.Sqrt(r2))
		s.Virial += strength * shared.debyeHueckel.forceOverR(r2) * r2
	}
	return s
}

// site is a bead of a domain.
type site struct {
	at   Vec     // nm, exact
	p, q float64 // force parameters
	kind uint8   // residue type
}

// sites returns the beads of a domain, indexed as in its pair list.
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
