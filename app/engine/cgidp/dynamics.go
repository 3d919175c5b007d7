package cgidp

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// dynamics moves one chain by the middle Langevin scheme (Zhang et al., J. Phys.
// Chem. A 2019, 123, 6056). Its state is x, v, source and step: forces follow
// from x, and the lists behind them leave no trace.
type dynamics struct {
	model  *model
	x      []vec // nm, never wrapped or recentred
	v      []vec // nm/ps, at half steps
	source *generator
	step   int64 // steps done

	field  *field
	kick   []float64 // dt/m per bead
	keep   float64   // part of a velocity that friction leaves in a step
	noise  []float64 // width of the random velocity added in a step, per bead
	random []float64 // of one step: x, y, z of the first bead and so on
}

// newDynamics returns a chain with a start structure and velocities drawn from
// source. A nil error means that forces are known for the first step.
func newDynamics(m *model, source *generator) (*dynamics, error) {
	d := blankDynamics(m, source)
	return d, d.start()
}

func (d *dynamics) start() error {
	m := d.model
	rng := rand.New(d.source)
	d.x = walk(m, rng)
	for i := range d.v {
		width := math.Sqrt(m.kT / m.mass[i])
		d.v[i] = vec{width * rng.NormFloat64(), width * rng.NormFloat64(), width * rng.NormFloat64()}
	}
	return d.wake()
}

// blankDynamics has neither positions nor velocities yet.
func blankDynamics(m *model, source *generator) *dynamics {
	d := &dynamics{model: m, source: source, field: newField(m)}
	d.setFriction(m.friction)
	d.x = make([]vec, m.size())
	d.v = make([]vec, m.size())
	d.random = make([]float64, 3*m.size())
	return d
}

// wake computes the forces that the first step needs.
func (d *dynamics) wake() error { return d.check(d.field.compute(d.x)) }

func (d *dynamics) setFriction(friction float64) {
	m := d.model
	d.keep = math.Exp(-friction * timeStep)
	d.kick = make([]float64, m.size())
	d.noise = make([]float64, m.size())
	for i, mass := range m.mass {
		d.kick[i] = timeStep / mass
		d.noise[i] = math.Sqrt(m.kT * (1 - d.keep*d.keep) / mass)
	}
}

// advance does n steps. It fails if the chain breaks.
func (d *dynamics) advance(n int) error {
	for range n {
		d.move()
		d.step++
		if bead := d.field.compute(d.x); bead >= 0 {
			return d.check(bead)
		}
	}
	return nil
}

// move is one step of the integrator, with forces of the present positions.
func (d *dynamics) move() {
	const half = timeStep / 2
	d.source.normals(d.random)
	x, v, quads := d.x, d.v[:len(d.x)], d.field.beads
	kick, noise, keep := d.kick[:len(x)], d.noise[:len(x)], d.keep
	for i := range x {
		q, lane := bead(quads, i)
		r := (*[3]float64)(d.random[3*i:])
		u := v[i].plus(kick[i], q.force(lane))
		b := noise[i]
		w := vec{keep*u.X + b*r[0], keep*u.Y + b*r[1], keep*u.Z + b*r[2]}
		x[i] = x[i].plus(half, u).plus(half, w)
		v[i] = w
	}
}

func (d *dynamics) check(bead int) error {
	if bead < 0 {
		return nil
	}
	return fmt.Errorf("the chain broke at step %d, between residues %d and %d: "+
		"this should not happen, please report it with these settings", d.step, bead+1, bead+2)
}

// temperature is the kinetic one, in K; nothing is constrained.
func (d *dynamics) temperature() float64 {
	twice := 0.0
	for i := range d.v {
		twice += d.model.mass[i] * d.v[i].norm2()
	}
	return twice / (3 * float64(len(d.v)) * gasConstant)
}
