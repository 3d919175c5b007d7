package md

import "math"

// maxBond is the length in nm above which a bond counts as broken and the run has failed.
const maxBond = 1.0

// field computes the forces on one chain. It sums them in an order that does not depend
// on the state of the neighbor lists.
type field struct {
	model         *Model
	beads         []quad  // the whole chain, with its forces
	charges       []quad  // the charged beads, with their Debye–Hückel forces
	charged       []int32 // indexes of the charged beads
	ashbaughHatch *neighbours
	debyeHueckel  *neighbours
	built         []Vec // positions when the lists were last built
}

func newField(m *Model) *field {
	f := &field{model: m, beads: newQuads(m.Size())}
	for i, q := range m.charge {
		if q != 0 {
			f.charged = append(f.charged, int32(i))
		}
		quad, lane := bead(f.beads, i)
		quad.p[lane], quad.q[lane] = halfAshbaughHatch(m.types[i])
	}
	f.charges = newQuads(len(f.charged))
	for k, i := range f.charged {
		quad, lane := bead(f.charges, k)
		quad.p[lane], quad.q[lane] = m.lBkT*m.charge[i], m.charge[i]
	}
	f.ashbaughHatch = newNeighbours(ashbaughHatchCutoff, f.firstPartners())
	f.debyeHueckel = newNeighbours(chargeCutoff, f.firstCharges())
	return f
}

// firstPartners returns, for each bead, its first non-bonded partner of higher index,
// which is the next but one along the chain.
func (f *field) firstPartners() []int32 {
	first := make([]int32, f.model.Size())
	for i := range first {
		first[i] = int32(i + 2)
	}
	return first
}

// firstCharges returns, for each charged bead, the next charged bead not bonded to it.
func (f *field) firstCharges() []int32 {
	first := make([]int32, len(f.charged))
	for k := range first {
		first[k] = int32(k + 1)
		if k+1 < len(first) && f.charged[k+1] == f.charged[k]+1 {
			first[k]++
		}
	}
	return first
}

// compute computes the forces at the positions x. It returns the index of a bead whose
// bond to the next is too long or NaN, or -1 if there is none.
func (f *field) compute(x []Vec) int {
	if bead := f.bonds(x); bead >= 0 {
		return bead
	}
	f.placeCharges(x)
	if f.moved(x) {
		f.built = append(f.built[:0], x...)
		f.ashbaughHatch.build(f.beads)
		f.debyeHueckel.build(f.charges)
	}
	addAshbaughHatch(f.beads, &f.ashbaughHatch.pairList)
	addDebyeHueckel(f.charges, &f.debyeHueckel.pairList, f.model.debyeHueckel)
	for k, i := range f.charged {
		to, lane := bead(f.beads, int(i))
		from, at := bead(f.charges, k)
		to.fx[lane] += from.fx[at]
		to.fy[lane] += from.fy[at]
		to.fz[lane] += from.fz[at]
	}
	return -1
}

// force returns the force on a bead from the last call of compute, in kJ/mol/nm.
func (f *field) force(i int) Vec {
	q, lane := bead(f.beads, i)
	return q.force(lane)
}

// bonds copies the positions and sets the forces to the bond forces. It returns the same
// values as compute.
func (f *field) bonds(x []Vec) int {
	var before Vec // force from the bond to the previous bead
	for i := range x {
		q, lane := bead(f.beads, i)
		q.setPosition(lane, x[i])
		if i+1 == len(x) {
			q.setForce(lane, before)
			break
		}
		d := x[i].Sub(x[i+1])
		r2 := d.Norm2()
		if !(r2 < maxBond*maxBond) {
			return i
		}
		w := bondStiffness * (bondLength/math.Sqrt(r2) - 1)
		q.setForce(lane, before.AddScaled(w, d))
		before = Vec{}.AddScaled(-w, d)
	}
	return -1
}

// placeCharges copies the positions of the charged beads and clears their forces.
func (f *field) placeCharges(x []Vec) {
	for k, i := range f.charged {
		q, lane := bead(f.charges, k)
		q.setPosition(lane, x[i])
		q.setForce(lane, Vec{})
	}
}

// moved reports whether the lists are no longer valid for x.
func (f *field) moved(x []Vec) bool {
	if len(f.built) != len(x) {
		return true
	}
	const limit = (skin / 2) * (skin / 2)
	for i := range x {
		if x[i].Sub(f.built[i]).Norm2() > limit {
			return true
		}
	}
	return false
}

// energies are the terms of the potential energy, in kJ/mol.
type energies struct{ bond, ashbaughHatch, debyeHueckel float64 }

func (e energies) total() float64 { return e.bond + e.ashbaughHatch + e.debyeHueckel }

// energy evaluates the exact potentials at x, which must be the positions last passed to
// compute.
func (f *field) energy(x []Vec) energies {
	var e energies
	m := f.model
	for i := 0; i+1 < len(x); i++ {
		stretch := x[i].Sub(x[i+1]).Norm() - bondLength
		e.bond += bondStiffness / 2 * stretch * stretch
	}
	for i, j := range f.ashbaughHatch.all() {
		e.ashbaughHatch += m.ashbaughHatch[m.types[i]][m.types[j]].energy(x[i].Sub(x[j]).Norm2())
	}
	for k, l := range f.debyeHueckel.all() {
		i, j := f.charged[k], f.charged[l]
		e.debyeHueckel += debyeHueckelEnergy(m.lBkT*m.charge[i]*m.charge[j], m.kappa, x[i].Sub(x[j]).Norm())
	}
	return e
}
