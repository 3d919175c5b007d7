package cgidp

import "math"

// field computes the forces on one chain. Sums are made in an order that does
// not depend on the state of the neighbour lists.
type field struct {
	model      *model
	neighbours *neighbours
	force      []vec // kJ/mol/nm, of the last call of compute
}

func newField(m *model) *field {
	return &field{model: m, neighbours: newNeighbours(m), force: make([]vec, m.size())}
}

// compute sets force for the positions x. It returns the number of a bead whose
// bond to the next is too long or not a number, or -1 if all is well.
func (f *field) compute(x []vec) int {
	clear(f.force)
	if bead := f.addBonds(x); bead >= 0 {
		return bead
	}
	f.neighbours.follow(x)
	f.addStick(x)
	f.addScreen(x)
	return -1
}

func (f *field) addBonds(x []vec) int {
	force := f.force[:len(x)]
	for i := 0; i+1 < len(x); i++ {
		d := x[i].sub(x[i+1])
		r2 := d.norm2()
		if !(r2 < maxBond*maxBond) {
			return i
		}
		w := bondStiffness * (bondLength/math.Sqrt(r2) - 1)
		force[i] = force[i].plus(w, d)
		force[i+1] = force[i+1].plus(-w, d)
	}
	return -1
}

// addStick adds Ashbaugh-Hatch forces.
func (f *field) addStick(x []vec) {
	list, types := &f.neighbours.stick, f.model.types[:len(x)]
	force := f.force[:len(x)]
	for i := range x {
		xi, table := x[i], &f.model.stick[types[i]]
		var sx, sy, sz float64
		for _, p := range list.col[list.start[i]:list.start[i+1]] {
			j := p.bead()
			xj := &x[j]
			dx, dy, dz := xj.X-xi.X, xj.Y-xi.Y, xj.Z-xi.Z
			r2 := dx*dx + dy*dy + dz*dz
			if !(r2 < stickCutoff*stickCutoff) {
				continue
			}
			w := table[p.kind()].forceOverR(r2)
			dx *= w
			dy *= w
			dz *= w
			sx += dx
			sy += dy
			sz += dz
			fj := &force[j]
			fj.X += dx
			fj.Y += dy
			fj.Z += dz
		}
		force[i] = force[i].sub(vec{sx, sy, sz})
	}
}

// addScreen adds Debye-Hückel forces.
func (f *field) addScreen(x []vec) {
	n, table := f.neighbours, f.model.screen
	force := f.force[:len(x)]
	for k, i := range n.charged {
		xi := x[i]
		lo, hi := n.screen.start[k], n.screen.start[k+1]
		row := n.screen.col[lo:hi]
		strength := n.strength[lo:hi][:len(row)]
		var sx, sy, sz float64
		for e, p := range row {
			j := p.bead()
			xj := &x[j]
			dx, dy, dz := xj.X-xi.X, xj.Y-xi.Y, xj.Z-xi.Z
			r2 := dx*dx + dy*dy + dz*dz
			if !(r2 < chargeCutoff*chargeCutoff) {
				continue
			}
			w := strength[e]
			if r2 < screenMin2 {
				w *= table.forceOverR(r2)
			} else {
				w *= table.interpolated(r2)
			}
			dx *= w
			dy *= w
			dz *= w
			sx += dx
			sy += dy
			sz += dz
			fj := &force[j]
			fj.X += dx
			fj.Y += dy
			fj.Z += dz
		}
		force[i] = force[i].sub(vec{sx, sy, sz})
	}
}

// energies are the parts of the potential energy, in kJ/mol.
type energies struct{ bond, stick, screen float64 }

func (e energies) total() float64 { return e.bond + e.stick + e.screen }

// energy evaluates the exact potentials for the positions last given to compute.
func (f *field) energy(x []vec) energies {
	var e energies
	m, n := f.model, f.neighbours
	for i := 0; i+1 < len(x); i++ {
		stretch := x[i].sub(x[i+1]).norm() - bondLength
		e.bond += bondStiffness / 2 * stretch * stretch
	}
	for i := range x {
		for _, p := range n.stick.col[n.stick.start[i]:n.stick.start[i+1]] {
			e.stick += m.stick[m.types[i]][p.kind()].energy(x[i].sub(x[p.bead()]).norm2())
		}
	}
	for k, i := range n.charged {
		for p := n.screen.start[k]; p < n.screen.start[k+1]; p++ {
			r := x[i].sub(x[n.screen.col[p].bead()]).norm()
			e.screen += screenedEnergy(n.strength[p], m.kappa, r)
		}
	}
	return e
}
