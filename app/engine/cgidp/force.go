package cgidp

import "math"

// field computes the forces on one chain. Sums are made in an order that does
// not depend on the state of the neighbour lists.
type field struct {
	model   *model
	beads   []quad  // all of the chain, and the forces on them
	charges []quad  // those with a charge, and the Debye-Hückel forces on them
	charged []int32 // their numbers
	stick   *neighbours
	screen  *neighbours
	built   []vec // positions at the last build of the lists
}

func newField(m *model) *field {
	f := &field{model: m, beads: newQuads(m.size())}
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

// firstPartners are, for each bead, the next but one.
func (f *field) firstPartners() []int32 {
	first := make([]int32, f.model.size())
	for i := range first {
		first[i] = int32(i + 2)
	}
	return first
}

// firstCharges are, for each charged bead, the next charged one that it is not
// bonded to.
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
// whose bond to the next is too long or not a number, or -1 if all is well.
func (f *field) compute(x []vec) int {
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

// force on a bead, of the last call of compute, in kJ/mol/nm.
func (f *field) force(i int) vec {
	q, lane := bead(f.beads, i)
	return q.force(lane)
}

// bonds takes over positions and sets forces to those of bonds.
func (f *field) bonds(x []vec) int {
	var before vec // force from the bond to the bead before
	for i := range x {
		q, lane := bead(f.beads, i)
		q.place(lane, x[i])
		if i+1 == len(x) {
			q.push(lane, before)
			break
		}
		d := x[i].sub(x[i+1])
		r2 := d.norm2()
		if !(r2 < maxBond*maxBond) {
			return i
		}
		w := bondStiffness * (bondLength/math.Sqrt(r2) - 1)
		q.push(lane, before.plus(w, d))
		before = vec{}.plus(-w, d)
	}
	return -1
}

// placeCharges takes over positions of charged beads and clears their forces.
func (f *field) placeCharges(x []vec) {
	for k, i := range f.charged {
		q, lane := bead(f.charges, k)
		q.place(lane, x[i])
		q.push(lane, vec{})
	}
}

// moved tells whether the lists no longer hold for x.
func (f *field) moved(x []vec) bool {
	if len(f.built) != len(x) {
		return true
	}
	const limit = (skin / 2) * (skin / 2)
	for i := range x {
		if x[i].sub(f.built[i]).norm2() > limit {
			return true
		}
	}
	return false
}

// energies are the parts of the potential energy, in kJ/mol.
type energies struct{ bond, stick, screen float64 }

func (e energies) total() float64 { return e.bond + e.stick + e.screen }

// energy evaluates the exact potentials for the positions last given to compute.
func (f *field) energy(x []vec) energies {
	var e energies
	m := f.model
	for i := 0; i+1 < len(x); i++ {
		stretch := x[i].sub(x[i+1]).norm() - bondLength
		e.bond += bondStiffness / 2 * stretch * stretch
	}
	for i, j := range f.stick.all() {
		e.stick += m.stick[m.types[i]][m.types[j]].energy(x[i].sub(x[j]).norm2())
	}
	for k, l := range f.screen.all() {
		i, j := f.charged[k], f.charged[l]
		e.screen += screenedEnergy(m.lBkT*m.charge[i]*m.charge[j], m.kappa, x[i].sub(x[j]).norm())
	}
	return e
}
