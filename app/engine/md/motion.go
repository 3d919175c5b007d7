package md

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// Motion integrates the chains of a mixture with the scheme of [Dynamics]. Its state is
// the step number, positions, velocities, the random number generator of each chain, and
// the positions from which the lists were last built. Results do not depend on the number
// of workers.
type Motion struct {
	mix             *Mixture
	team            *Team
	x               []Vec     // nm, never wrapped
	fine            []fineVec // x in units of positionUnit
	v               []Vec     // nm/ps, at half steps
	built           []Vec     // positions when the lists were last built
	sources         []Random
	step            int64 // completed steps
	pull            float64
	driftSincePrune float64 // nm, maximum bead displacement since the lists were pruned
	driftSinceBuild float64 // nm, maximum bead displacement since the lists were built, if known

	baths         map[*Model]*thermostat
	ashbaughHatch *domains
	debyeHueckel  *domains
	scratch       []workerScratch // per worker
	stale         atomic.Bool     // a bead has moved too far for the lists
	broken        atomic.Int64    // 1 + the first bead of a broken bond
	largest       []int           // domains of both kinds, in descending number of pairs
}

// workerScratch is the per-worker scratch space for one chain.
type workerScratch struct {
	force  []Vec
	random []float64

	fetched  float32 // keeps the compiler from removing the prefetch
	farthest float64 // maximum squared bead displacement in this step, nm²
}

// NewMotion returns chains without positions and velocities. Set them with Start, or with
// Archive followed by Resume.
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
	d.ashbaughHatch = newDomains(m, ashbaughHatchCutoff, everyBead, func(m *Model, bead int) (p, q float64) { return halfAshbaughHatch(m.types[bead]) })
	d.debyeHueckel = newDomains(m, chargeCutoff, chargedBeads, func(m *Model, bead int) (p, q float64) {
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

// Start sets the conformation and draws velocities at the temperature. It returns the
// same errors as Advance.
func (d *Motion) Start(x []Vec) error {
	copy(d.x, x)
	for chain, model := range d.mix.model {
		model.drawVelocities(PartOf(d.mix, d.v, chain), d.sources[chain].rng())
	}
	copy(d.built, d.x)
	return d.Resume()
}

// Archive saves or restores the state.
func (d *Motion) Archive(a *Archive) {
	a.Integer(&d.step)
	a.vectors(d.x)
	a.vectors(d.v)
	a.vectors(d.built)
	for chain := range d.sources {
		d.sources[chain].archive(a)
	}
}

// Resume computes the forces for the first step after a restore. It returns the same
// errors as Advance.
func (d *Motion) Resume() error {
	d.refine(d.built)
	d.buildLists()
	d.driftSinceBuild = math.Inf(1) // x might be far from built
	d.team.Each(d.mix.Chains(), func(_, chain int) { d.checkBonds(chain) })
	if err := d.failure(); err != nil {
		return err
	}
	d.refine(d.x)
	d.interact()
	return nil
}

// Pull sets the spring constant in kJ/mol/nm², per bead, of a restraint that pulls the
// center of each chain towards the middle of the box along z. 0 means no restraint. It
// takes effect at the next step.
func (d *Motion) Pull(stiffness float64) { d.pull = stiffness }

// Advance computes n steps. It returns an error if a bond breaks, which a correct
// integrator never causes; the chains are unusable afterwards.
func (d *Motion) Advance(n int) error {
	for range n {
		d.team.Each(d.mix.Chains(), d.moveChain)
		d.step++
		if err := d.failure(); err != nil {
			return err
		}
		way := d.farthest()
		d.driftSincePrune += way
		d.driftSinceBuild += way
		if d.stale.Load() {
			d.stale.Store(false)
			copy(d.built, d.x)
			d.buildLists()
		}
		d.interact()
	}
	return nil
}

// farthest returns the maximum displacement of a bead in the last step, in nm.
func (d *Motion) farthest() float64 {
	r2 := 0.0
	for k := range d.scratch {
		r2 = max(r2, d.scratch[k].farthest)
		d.scratch[k].farthest = 0
	}
	return math.Sqrt(r2)
}

// buildLists builds the lists for the positions in built, which must also be in fine.
func (d *Motion) buildLists() {
	d.ashbaughHatch.build(d.mix, d.built, d.fine, d.team)
	d.debyeHueckel.build(d.mix, d.built, d.fine, d.team)
	d.sortTasks()
	d.driftSincePrune, d.driftSinceBuild = math.Inf(1), 0 // forces pruning
}

// sortTasks sorts the tasks longest first, so that the workers finish at about the same
// time.
func (d *Motion) sortTasks() {
	n := len(d.ashbaughHatch.domain)
	d.largest = d.largest[:0]
	for k := range n + len(d.debyeHueckel.domain) {
		d.largest = append(d.largest, k)
	}
	cost := func(k int) int {
		if k < n {
			return len(d.ashbaughHatch.domain[k].tiles)
		}
		return len(d.debyeHueckel.domain[k-n].tiles)
	}
	slices.SortStableFunc(d.largest, func(a, b int) int { return cost(b) - cost(a) })
}

// interact computes all pair forces.
func (d *Motion) interact() {
	n := len(d.ashbaughHatch.domain)
	rebuild := d.driftSincePrune > innerSkin/2
	if rebuild {
		d.driftSincePrune = 0
	}
	d.team.Each(len(d.largest), func(_, task int) {
		k, kind := d.largest[task], d.ashbaughHatch
		if k >= n {
			k, kind = k-n, d.debyeHueckel
		}
		domain := &kind.domain[k]
		domain.placeBeads(d.fine)
		if rebuild {
			domain.pruneTo(&domain.near, kind.cutoff+innerSkin)
		}
		if kind == d.ashbaughHatch {
			addAshbaughHatch32(domain.quads, &domain.near)
		} else {
			addDebyeHueckel32(domain.quads, &domain.near, d.mix.debyeHueckel)
		}
	})
}

// moveChain performs one integration step of a chain with the forces of the current
// positions.
func (d *Motion) moveChain(worker, chain int) {
	const rounding = 1e-9 // nm, more than the rounding error of a sum of displacements
	model := d.mix.model[chain]
	x, v, fine := PartOf(d.mix, d.x, chain), PartOf(d.mix, d.v, chain), PartOf(d.mix, d.fine, chain)
	h := &d.scratch[worker]
	force, random := h.force[:len(x)], h.random[:3*len(x)]
	h.fetched = d.ashbaughHatch.prefetchForces(chain) + d.debyeHueckel.prefetchForces(chain)
	model.bondForces(x, force)
	d.ashbaughHatch.addForces(chain, force)
	d.debyeHueckel.addForces(chain, force)
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
	if d.driftSinceBuild+math.Sqrt(farthest) > outerSkin/2-rounding && leftLists(x, PartOf(d.mix, d.built, chain)) {
		d.stale.Store(true) // the lists will be rebuilt
	}
}

// leftLists reports whether a bead has moved too far for the lists.
func leftLists(x, built []Vec) bool {
	const limit = (outerSkin / 2) * (outerSkin / 2)
	for i := range x {
		if x[i].Sub(built[i]).Norm2() > limit {
			return true
		}
	}
	return false
}

// refine sets fine from x.
func (d *Motion) refine(x []Vec) {
	for i := range x {
		d.fine[i] = x[i].fine()
	}
}

// addPull adds the forces of the restraint.
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

// bondForces sets force to the bond forces.
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

// checkBonds checks a chain for a broken bond.
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

// failure returns an error if a bond is broken.
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

// Step returns the number of completed steps.
func (d *Motion) Step() int64 { return d.step }

// Positions returns one position per bead, in nm. They are neither wrapped nor copied:
// the caller must not modify them, and Advance changes them.
func (d *Motion) Positions() []Vec { return d.x }

// Temperature returns the kinetic temperature in K, with three degrees of freedom per
// bead because nothing is constrained.
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
