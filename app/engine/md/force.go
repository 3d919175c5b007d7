package md

import "math"

// maxBond is the length in nm beyond which a bond counts as broken: the run has
// failed.
const maxBond = 1.0

// field computes the forces on one chain. It adds them up in an order that does
// not depend on the state of the neighbour lists.
type field struct {
	model   *Model
	beads   []quad  // the whole chain, and the forces on it
	charges []quad  // the charged beads, and the Debye-Hückel forces on them
	charged []int32 // their numbers
	stick   *neighbours
	screen  *neighbours
	built   []Vec // positions when the lists were last built
}

func newField(m *Model) *field {
	f := &field{model: m, beads: newQuads(m.Size())}
	for i, q := range m.charge {
		if q != 0 {
			f.charged = append(f.charged, int32(i))
		}
		quad, lane := bead(f.beads, i)
		quad.p[lane], quad.q[lane] = halfStick(m.types[i])
	}
	f.charges = newQuads(len(f.charged))
	for k, i := range f.charged {
		quad, lane := bead(f.charges, k)
		quad.p[lane], quad.q[lane] = m.lBkT*m.charge[i], m.charge[i]
	}
	f.stick = newNeighbours(stickCutoff, f.firstPartners())
	f.screen = newNeighbours(chargeCutoff, f.firstCharges())
	return f
}

// firstPartners returns, for each bead, the next but one.
func (f *field) firstPartners() []int32 {
	first := make([]int32, f.model.Size())
	for i := range first {
		first[i] = int32(i + 2)
	}
	return first
}

// firstCharges returns, for each charged bead, the next charged one that is not
// bonded to it.
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

// compute finds the forces for the positions x. It returns the number of a bead
// whose bond to the next is too long or NaN, or -1 if all is well.
func (f *field) compute(x []Vec) int {
	if bead := f.bonds(x); bead >= 0 {
		return bead
	}
	f.placeCharges(x)
	if f.moved(x) {
		f.built = append(f.built[:0], x...)
		f.stick.build(f.beads)
		f.screen.build(f.charges)
	}
	addStick(f.beads, &f.stick.pairList)
	addScreen(f.charges, &f.screen.pairList, f.model.screen)
	for k, i := range f.charged {
		to, lane := bead(f.beads, int(i))
		from, at := bead(f.charges, k)
		to.fx[lane] += from.fx[at]
		to.fy[lane] += from.fy[at]
		to.fz[lane] += from.fz[at]
	}
	return -1
}

// force on a bead, as of the last call of compute, in kJ/mol/nm.
func (f *field) force(i int) Vec {
	q, lane := bead(f.beads, i)
	return q.force(lane)
}

// bonds copies the positions and sets the forces to those of the bonds.
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

// placeCharges copies the positions of charged beads and clears their forces.
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

// energies are the parts of the potential energy, in kJ/mol.
type energies struct{ bond, stick, screen float64 }

func (e energies) total() float64 { return e.bond + e.stick + e.screen }

// energy evaluates the exact potentials for the positions last given to compute.
func (f *field) energy(x []Vec) energies {
	var e energies
	m := f.model
	for i := 0; i+1 < len(x); i++ {
		stretch := x[i].Sub(x[i+1]).Norm() - bondLength
		e.bond += bondStiffness / 2 * stretch * stretch
	}
	for i, j := range f.stick.all() {
		e.stick += m.stick[m.types[i]][m.types[j]].energy(x[i].Sub(x[j]).Norm2())
	}
	for k, l := range f.screen.all() {
		i, j := f.charged[k], f.charged[l]
		e.screen += screenedEnergy(m.lBkT*m.charge[i]*m.charge[j], m.kappa, x[i].Sub(x[j]).Norm())
	}
	return e
}
