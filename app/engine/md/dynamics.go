package md

import (
	"fmt"
	"math/rand/v2"
)

// TimeStep is the integration time step in ps.
const TimeStep = 0.01

// Dynamics integrates one chain with the middle Langevin scheme (Zhang et al., J. Phys.
// Chem. A 2019, 123, 6056). Its state is the step number, positions, velocities and the
// random number generator, because forces follow from the positions, and neighbor lists
// do not influence results.
type Dynamics struct {
	model  *Model
	x      []Vec // nm, never wrapped or recentered
	v      []Vec // nm/ps, at half steps
	source *Random
	step   int64 // completed steps

	field  *field
	bath   thermostat
	random []float64 // for one step: x, y, z of the first bead and so on
}

// NewDynamics returns a chain without positions and velocities. Set them with Start, or
// with Archive followed by Resume.
func NewDynamics(m *Model, source *Random) *Dynamics {
	d := &Dynamics{model: m, source: source, field: newField(m), bath: newThermostat(m, m.Friction)}
	d.x = make([]Vec, m.Size())
	d.v = make([]Vec, m.Size())
	d.random = make([]float64, 3*m.Size())
	return d
}

// Start generates a self-avoiding conformation with bond lengths and velocities at the
// temperature. It returns the same errors as Advance.
func (d *Dynamics) Start() error {
	m := d.model
	rng := rand.New(d.source)
	d.x = walk(m, rng)
	m.shake(d.x, rng)
	m.drawVelocities(d.v, rng)
	return d.Resume()
}

// Archive saves or restores the state.
func (d *Dynamics) Archive(a *Archive) {
	a.Integer(&d.step)
	a.vectors(d.x)
	a.vectors(d.v)
	d.source.archive(a)
}

// Resume computes the forces for the first step after a restore. It returns the same
// errors as Advance.
func (d *Dynamics) Resume() error { return d.checkBonds(d.field.compute(d.x)) }

// Advance computes n steps. It returns an error if a bond breaks, which a correct
// integrator never causes; the chain is unusable afterwards.
func (d *Dynamics) Advance(n int) error {
	for range n {
		d.moveBeads()
		d.step++
		if bead := d.field.compute(d.x); bead >= 0 {
			return d.checkBonds(bead)
		}
	}
	return nil
}

// moveBeads performs one integration step with the forces of the current positions.
func (d *Dynamics) moveBeads() {
	d.source.normals(d.random)
	x, v, quads := d.x, d.v[:len(d.x)], d.field.beads
	for i := range x {
		q, lane := bead(quads, i)
		x[i], v[i] = d.bath.push(i, x[i], v[i], q.force(lane), (*[3]float64)(d.random[3*i:]))
	}
}

func (d *Dynamics) checkBonds(bead int) error {
	if bead < 0 {
		return nil
	}
	return fmt.Errorf("the chain broke at step %d, between residues %d and %d: "+
		"this should not happen, please report it with these settings", d.step, bead+1, bead+2)
}

// Release frees memory needed only by Advance and PotentialEnergy, neither of which can
// be called afterwards.
func (d *Dynamics) Release() { d.field = nil }

// Step returns the number of completed steps.
func (d *Dynamics) Step() int64 { return d.step }

// Positions returns one position per bead, in nm. They are neither centered nor copied:
// the caller must not modify them, and Advance changes them.
func (d *Dynamics) Positions() []Vec { return d.x }

// PotentialEnergy returns the energy of the current positions, in kJ/mol.
func (d *Dynamics) PotentialEnergy() float64 { return d.field.energy(d.x).total() }

// Temperature returns the kinetic temperature in K, with three degrees of freedom per
// bead because nothing is constrained.
func (d *Dynamics) Temperature() float64 {
	twice := 0.0
	for i := range d.v {
		twice += d.model.mass[i] * d.v[i].Norm2()
	}
	return twice / (3 * float64(len(d.v)) * gasConstant)
}
