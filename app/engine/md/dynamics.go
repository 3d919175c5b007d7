package md

import (
	"fmt"
	"math/rand/v2"
)

// TimeStep is the length of a step in ps.
const TimeStep = 0.01

// Dynamics moves one chain by the middle Langevin scheme (Zhang et al., J. Phys.
// Chem. A 2019, 123, 6056). Its state is the number of steps, positions,
// velocities and the random numbers: forces follow from the positions, and
// neighbour lists do not influence results.
type Dynamics struct {
	model  *Model
	x      []Vec // nm, never wrapped or recentred
	v      []Vec // nm/ps, at half steps
	source *Random
	step   int64 // steps done

	field  *field
	bath   thermostat
	random []float64 // of one step: x, y, z of the first bead and so on
}

// NewDynamics returns a chain without positions and velocities. They come from
// Start or, followed by Resume, from Archive.
func NewDynamics(m *Model, source *Random) *Dynamics {
	d := &Dynamics{model: m, source: source, field: newField(m), bath: newThermostat(m, m.Friction)}
	d.x = make([]Vec, m.Size())
	d.v = make([]Vec, m.Size())
	d.random = make([]float64, 3*m.Size())
	return d
}

// Start draws a self-avoiding conformation, bonds and velocities of the temperature. It
// returns an error like that of Advance.
func (d *Dynamics) Start() error {
	m := d.model
	rng := rand.New(d.source)
	d.x = walk(m, rng)
	m.shake(d.x, rng)
	m.drawVelocities(d.v, rng)
	return d.Resume()
}

// Archive stores or restores the state.
func (d *Dynamics) Archive(a *Archive) {
	a.Integer(&d.step)
	a.vectors(d.x)
	a.vectors(d.v)
	d.source.archive(a)
}

// Resume computes the forces that the first step after a restored state needs. It
// returns an error like that of Advance.
func (d *Dynamics) Resume() error { return d.checkBonds(d.field.compute(d.x)) }

// Advance computes n steps. It returns an error if a bond breaks, which a correct
// integrator never does; the chain is of no use afterwards.
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

// moveBeads is one step of the integrator, with the forces of the present positions.
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

// Release frees what only Advance and PotentialEnergy need: neither may be called
// afterwards.
func (d *Dynamics) Release() { d.field = nil }

// Step returns the number of steps done.
func (d *Dynamics) Step() int64 { return d.step }

// Positions returns one position per bead, in nm. They are neither centred nor
// copied: the caller must not change them, and Advance does.
func (d *Dynamics) Positions() []Vec { return d.x }

// PotentialEnergy returns the energy of the present positions, in kJ/mol.
func (d *Dynamics) PotentialEnergy() float64 { return d.field.energy(d.x).total() }

// Temperature returns the kinetic temperature in K, with three degrees of freedom
// per bead: nothing is constrained.
func (d *Dynamics) Temperature() float64 {
	twice := 0.0
	for i := range d.v {
		twice += d.model.mass[i] * d.v[i].Norm2()
	}
	return twice / (3 * float64(len(d.v)) * gasConstant)
}
