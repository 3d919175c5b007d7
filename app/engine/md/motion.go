package md

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// Motion moves the chains of a mixture by the scheme of [Dynamics]. Its state is the number
// of steps, positions, velocities, the random numbers of each chain, and the positions from
// which the lists were last built. Results do not depend on the number of workers.
type Motion struct {
	mix     *Mixture
	team    *Team
	x       []Vec     // nm, never wrapped
	fine    []fineVec // positions again
	v       []Vec     // nm/ps, at half steps
	built   []Vec     // positions when the lists were last built
	sources []Random
	step    int64 // steps done
	pull    float64
	path    float64 // nm, no bead has gone farther since the lists were pruned
	drift   float64 // nm, no bead has gone farther since the lists were built, if that is known

	baths   map[*Model]*thermostat
	stick   *domains
	screen  *domains
	scratch []workerScratch // of each worker
	stale   atomic.Bool     // some bead has moved too far for the lists
	broken  atomic.Int64    // 1 + the first bead of a broken bond
	largest []int           // domains of both kinds, those with the most pairs first
}

// workerScratch is what a worker needs for a chain.
type workerScratch struct {
	force  []Vec
	random []float64

	fetched  float32 // keeps the compiler from leaving out what is not used
	farthest float64 // square of the longest way of a bead in this step, nm²
}

// NewMotion returns chains without positions and velocities. They come from Start or,
// followed by Resume, from Archive.
func NewMotion(m *Mixture, team *Team, seed uint64, replica int) *Motion {
	d := &Motion{mix: m, team: team, baths: make(map[*Model]*thermostat)}
	n, longest := m.Size(), 0
	d.x, d.v, d.built, d.fine = make([]Vec, n), make([]Vec, n), make([]Vec, n), make([]fineVec, n)
	for chain, model := range m.model {
		d.sources = append(d.sources, randomOf(seed, chain, replica))
		longest = max(longest, model.Size())
		if d.baths[model] == nil {
			bath := newThermostat(model, model.Friction)
			d.baths[model] = &bath
		}
	}
	for range team.Size() {
		d.scratch = append(d.scratch, workerScratch{force: make([]Vec, longest), random: make([]float64, 3*longest)})
	}
	d.stick = newDomains(m, stickCutoff, everyBead, func(m *Model, bead int) (p, q float64) { return halfStick(m.types[bead]) })
	d.screen = newDomains(m, chargeCutoff, chargedBeads, func(m *Model, bead int) (p, q float64) {
		return m.lBkT * m.charge[bead], m.charge[bead]
	})
	return d
}

func everyBead(m *Model) []int32 {
	all := make([]int32, m.Size())
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

func chargedBeads(m *Model) []int32 {
	var charged []int32
	for i, q := range m.charge {
		if q != 0 {
			charged = append(charged, int32(i))
		}
	}
	return charged
}

// Start takes a conformation and draws velocities of the temperature. It returns an error
// like that of Advance.
func (d *Motion) Start(x []Vec) error {
	copy(d.x, x)
	for chain, model := range d.mix.model {
		model.drawVelocities(PartOf(d.mix, d.v, chain), d.sources[chain].rng())
	}
	copy(d.built, d.x)
	return d.Resume()
}

// Archive stores or restores the state.
func (d *Motion) Archive(a *Archive) {
	a.Integer(&d.step)
	a.vectors(d.x)
	a.vectors(d.v)
	a.vectors(d.built)
	for chain := range d.sources {
		d.sources[chain].archive(a)
	}
}

// Resume computes the forces that the first step after a restored state needs. It
// returns an error like that of Advance.
func (d *Motion) Resume() error {
	d.refine(d.built)
	d.buildLists()
	d.drift = math.Inf(1) // x may be far from built
	d.team.Each(d.mix.Chains(), func(_, chain int) { d.checkBonds(chain) })
	if err := d.failure(); err != nil {
		return err
	}
	d.refine(d.x)
	d.interact()
	return nil
}

// Pull sets the stiffness in kJ/mol/nm² of a spring on each bead that draws the middle of
// its chain towards the middle of the box along z; 0 is none. It holds from the next step.
func (d *Motion) Pull(stiffness float64) { d.pull = stiffness }

// Advance computes n steps. It returns an error if a bond breaks, which a correct
// integrator never does; the chains are of no use afterwards.
func (d *Motion) Advance(n int) error {
	for range n {
		d.team.Each(d.mix.Chains(), d.moveChain)
		d.step++
		if err := d.failure(); err != nil {
			return err
		}
		way := d.farthest()
		d.path += way
		d.drift += way
		if d.stale.Load() {
			d.stale.Store(false)
			copy(d.built, d.x)
			d.buildLists()
		}
		d.interact()
	}
	return nil
}

// farthest returns the longest way of a bead in the last step, in nm.
func (d *Motion) farthest() float64 {
	r2 := 0.0
	for k := range d.scratch {
		r2 = max(r2, d.scratch[k].farthest)
		d.scratch[k].farthest = 0
	}
	return math.Sqrt(r2)
}

// buildLists builds the lists for the positions in built, which fine has, too.
func (d *Motion) buildLists() {
	d.stick.build(d.mix, d.built, d.fine, d.team)
	d.screen.build(d.mix, d.built, d.fine, d.team)
	d.sortTasks()
	d.path, d.drift = math.Inf(1), 0 // prune them
}

// sortTasks puts the long tasks first, so that the workers end at about the same time.
func (d *Motion) sortTasks() {
	n := len(d.stick.domain)
	d.largest = d.largest[:0]
	for k := range n + len(d.screen.domain) {
		d.largest = append(d.largest, k)
	}
	cost := func(k int) int {
		if k < n {
			return len(d.stick.domain[k].tiles)
		}
		return len(d.screen.domain[k-n].tiles)
	}
	slices.SortStableFunc(d.largest, func(a, b int) int { return cost(b) - cost(a) })
}

// interact computes the forces of all pairs.
func (d *Motion) interact() {
	n := len(d.stick.domain)
	rebuild := d.path > innerSkin/2
	if rebuild {
		d.path = 0
	}
	d.team.Each(len(d.largest), func(_, task int) {
		k, kind := d.largest[task], d.stick
		if k >= n {
			k, kind = k-n, d.screen
		}
		domain := &kind.domain[k]
		domain.placeBeads(d.fine)
		if rebuild {
			domain.shorten(&domain.near, kind.cutoff+innerSkin)
		}
		if kind == d.stick {
			addStick32(domain.quads, &domain.near)
		} else {
			addScreen32(domain.quads, &domain.near, d.mix.screen)
		}
	})
}

// moveChain is one step of a chain, with the forces of the present positions.
func (d *Motion) moveChain(worker, chain int) {
	const rounding = 1e-9 // nm, more than that of a sum of ways
	model := d.mix.model[chain]
	x, v, fine := PartOf(d.mix, d.x, chain), PartOf(d.mix, d.v, chain), PartOf(d.mix, d.fine, chain)
	h := &d.scratch[worker]
	force, random := h.force[:len(x)], h.random[:3*len(x)]
	h.fetched = d.stick.fetch(chain) + d.screen.fetch(chain)
	model.bondForces(x, force)
	d.stick.addForces(chain, force)
	d.screen.addForces(chain, force)
	if d.pull != 0 {
		d.addPull(x, force)
	}
	d.sources[chain].normals(random)
	bath := d.baths[model]
	farthest := h.farthest
	for i := range x {
		before := x[i]
		x[i], v[i] = bath.push(i, before, v[i], force[i], (*[3]float64)(random[3*i:]))
		farthest = max(farthest, x[i].Sub(before).Norm2())
		fine[i] = x[i].fine()
	}
	h.farthest = farthest
	d.checkBonds(chain)
	if d.drift+math.Sqrt(farthest) > outerSkin/2-rounding && leftLists(x, PartOf(d.mix, d.built, chain)) {
		d.stale.Store(true) // the lists will be rebuilt
	}
}

// leftLists reports whether a bead has gone too far for the lists.
func leftLists(x, built []Vec) bool {
	const limit = (outerSkin / 2) * (outerSkin / 2)
	for i := range x {
		if x[i].Sub(built[i]).Norm2() > limit {
			return true
		}
	}
	return false
}

// refine sets the positions in units of fine.
func (d *Motion) refine(x []Vec) {
	for i := range x {
		d.fine[i] = x[i].fine()
	}
}

// addPull adds the forces of the springs.
func (d *Motion) addPull(x, force []Vec) {
	middle := 0.0
	for i := range x {
		middle += x[i].Z
	}
	f := -d.pull * (middle/float64(len(x)) - d.mix.Box.Z/2)
	for i := range force {
		force[i].Z += f
	}
}

// bondForces sets forces to those of the bonds.
func (m *Model) bondForces(x, force []Vec) {
	var before Vec // force from the bond to the previous bead
	for i := 0; i+1 < len(x); i++ {
		d := x[i].Sub(x[i+1])
		w := bondStiffness * (bondLength/math.Sqrt(d.Norm2()) - 1)
		force[i] = before.AddScaled(w, d)
		before = Vec{}.AddScaled(-w, d)
	}
	force[len(x)-1] = before
}

// checkBonds looks for a broken bond in a chain.
func (d *Motion) checkBonds(chain int) {
	from, to := d.mix.Span(chain)
	for i := from; i+1 < to; i++ {
		if d.x[i].Sub(d.x[i+1]).Norm2() < maxBond*maxBond {
			continue
		}
		bead := int64(i + 1)
		for old := d.broken.Load(); old == 0 || bead < old; old = d.broken.Load() {
			if d.broken.CompareAndSwap(old, bead) {
				break
			}
		}
		return
	}
}

// failure is the error of a broken bond, if there is one.
func (d *Motion) failure() error {
	bead := int(d.broken.Load()) - 1
	if bead < 0 {
		return nil
	}
	chain := 0
	for int(d.mix.first[chain+1]) <= bead {
		chain++
	}
	residue := bead - int(d.mix.first[chain]) + 1
	return fmt.Errorf("chain %d broke at step %d, between residues %d and %d: "+
		"this should not happen, please report it with these settings", chain+1, d.step, residue, residue+1)
}

// Step returns the number of steps done.
func (d *Motion) Step() int64 { return d.step }

// Positions returns one position per bead, in nm. They are neither wrapped nor copied:
// the caller must not change them, and Advance does.
func (d *Motion) Positions() []Vec { return d.x }

// Temperature returns the kinetic temperature in K, with three degrees of freedom per
// bead: nothing is constrained.
func (d *Motion) Temperature() float64 {
	twice := 0.0
	for chain, model := range d.mix.model {
		v := PartOf(d.mix, d.v, chain)
		for i := range v {
			twice += model.mass[i] * v[i].Norm2()
		}
	}
	return twice / (3 * float64(len(d.v)) * gasConstant)
}
