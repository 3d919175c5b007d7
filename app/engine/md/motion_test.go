package md

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

// mixed returns chains of three proteins of different lengths and charges in a box.
func mixed(t testing.TB, copies int, box Vec) *Mixture {
	t.Helper()
	c := in(293, 7, 0.15)
	var all []Component
	for _, name := range []string{"Hst5", "DSS1", "aSyn140"} {
		all = append(all, Component{NewModel(enginetest.ReferenceProtein(t, name).Sequence, c), copies})
	}
	return NewMixture(all, box)
}

// setOut starts chains that are packed into the whole box.
func setOut(t testing.TB, m *Mixture, cores int) *Motion {
	t.Helper()
	x, err := Pack(m, 1, 1, 0, m.Box.Z)
	must.OK(t, err)
	return startedAt(t, m, x, cores)
}

func startedAt(t testing.TB, m *Mixture, x []Vec, cores int) *Motion {
	t.Helper()
	team := NewTeam(cores)
	t.Cleanup(team.Close)
	d := NewMotion(m, team, 1, 1)
	must.OK(t, d.Start(x))
	return d
}

// resumed continues from a saved state.
func resumed(t testing.TB, m *Mixture, state *Archive, cores int) *Motion {
	t.Helper()
	team := NewTeam(cores)
	t.Cleanup(team.Close)
	d := NewMotion(m, team, 7, 1)
	d.Archive(OpenArchive(state.Bytes()))
	must.OK(t, d.Resume())
	return d
}

func (d *Motion) advance(t testing.TB, steps int) {
	t.Helper()
	must.OK(t, d.Advance(steps))
}

// forces returns the forces at the current positions without the restraint.
func (d *Motion) forces() []Vec {
	all := make([]Vec, d.mix.Size())
	for chain, model := range d.mix.model {
		of := PartOf(d.mix, all, chain)
		model.bondForces(PartOf(d.mix, d.x, chain), of)
		d.ashbaughHatch.addForces(chain, of)
		d.debyeHueckel.addForces(chain, of)
	}
	return all
}

// Lists and domains give the same forces, energies and virial as a loop over all pairs,
// in long boxes and in boxes in which a bead nearly interacts with its own image,
// wherever the chains have moved.
func TestForcesOfManyChainsAreThoseOfAllPairs(t *testing.T) {
	t.Parallel()
	boxes := []Vec{{MinBoxEdge, MinBoxEdge, MinBoxEdge}, {9, 10, 40}, {30, 9, 9.5}}
	for k, box := range boxes {
		t.Run(fmt.Sprint(box), func(t *testing.T) {
			t.Parallel()
			m := mixed(t, 2+k, box)
			d := setOut(t, m, 2)
			for k := range 5 {
				d.advance(t, 60*(k+1)) // the last time with several list builds
				sums, want := plainSums(m, d.x, nil)
				compareSums(t, d.Sums(), sums)
				worst, scale := 0.0, 0.0
				for i, f := range d.forces() {
					worst = max(worst, f.Sub(want[i]).Norm())
					scale = max(scale, want[i].Norm())
				}
				if worst > 5e-6*scale {
					t.Errorf("step %d: forces differ by %g of up to %g", d.Step(), worst, scale)
				}
				d.compareLists(t)
				d.scatter()
			}
		})
	}
}

// compareLists reports pairs within a cutoff that are missing from the pruned lists, are
// listed twice, or are listed although bonded. Forces would not reveal a pair missing at
// the cutoff, where they are too small.
func (d *Motion) compareLists(t *testing.T) {
	t.Helper()
	for name, kind := range map[string]*domains{"Ashbaugh-Hatch": d.ashbaughHatch, "Debye-Hückel": d.debyeHueckel} {
		var listed, want [][2]int32
		for k := range kind.domain {
			domain := &kind.domain[k]
			sites := kind.sites(d, domain)
			for i, j := range domain.near.all() {
				if sites[i].at.Sub(sites[j].at).Norm() < kind.cutoff {
					i, j := domain.from[i/quadSize].beads[i%quadSize], domain.from[j/quadSize].beads[j%quadSize]
					listed = append(listed, [2]int32{min(i, j), max(i, j)})
				}
			}
		}
		interacts := make([]bool, d.mix.Size())
		for _, g := range kind.groups {
			for _, bead := range g.beads[:g.used] {
				interacts[d.mix.first[g.chain]+bead] = true
			}
		}
		chain := 0
		for i := range d.x {
			if i == int(d.mix.first[chain+1]) {
				chain++
			}
			for j := i + 1; j < len(d.x); j++ {
				bonded := j == i+1 && j < int(d.mix.first[chain+1])
				if interacts[i] && interacts[j] && !bonded && d.mix.MinimumImage(d.x[i].Sub(d.x[j])).Norm() < kind.cutoff {
					want = append(want, [2]int32{int32(i), int32(j)})
				}
			}
		}
		slices.SortFunc(listed, func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
		if !slices.Equal(listed, want) {
			t.Errorf("step %d: the lists have %d %s pairs within the cutoff, not the %d that there are", d.Step(), len(listed), name, len(want))
		}
	}
}

// A chain longer than the box, including a quad of charges that are far apart, interacts
// exactly once with its own images.
func TestChainsMeetThemselves(t *testing.T) {
	t.Parallel()
	few := strings.Repeat("G", 20)
	m := NewMixture([]Component{{NewModel(few+"K"+few+"E"+few+"K"+few+"G", in(293, 7, 0.15)), 1}}, Vec{9, 9.2, 9.4})
	for _, along := range []Vec{{X: 1}, {Y: 1}, {Z: 1}, {Z: -1}, {X: 0.6, Y: -0.8}} {
		x := make([]Vec, m.Size())
		for i := range x {
			x[i] = Vec{0.1 * math.Sin(float64(i)), 0.1 * math.Cos(float64(i)), 0}.AddScaled(0.36*float64(i), along)
		}
		sums, _ := plainSums(m, x, nil)
		compareSums(t, startedAt(t, m, x, 1).Sums(), sums)
	}
}

func compareSums(t *testing.T, got, want Sums) {
	t.Helper()
	for what, v := range map[string][2]float64{
		"bond": {got.Bond, want.Bond}, "Ashbaugh-Hatch": {got.AshbaughHatch, want.AshbaughHatch},
		"Debye-Hückel": {got.DebyeHueckel, want.DebyeHueckel}, "virial": {got.Virial, want.Virial},
	} {
		if math.Abs(v[0]-v[1]) > 1e-6*(0.01+math.Abs(v[1])) {
			t.Errorf("%s: %v, over all pairs %v", what, v[0], v[1])
		}
	}
}

// scatter shifts each chain by box edges, which changes no force.
func (d *Motion) scatter() {
	rng := rand.New(rand.NewPCG(1, uint64(d.step)))
	for chain := range d.mix.Chains() {
		by := Vec{d.mix.Box.X * float64(rng.IntN(5)-2), d.mix.Box.Y * float64(rng.IntN(5)-2), d.mix.Box.Z * float64(rng.IntN(5)-2)}
		x := PartOf(d.mix, d.x, chain)
		for i := range x {
			x[i] = x[i].AddScaled(1, by)
		}
	}
	copy(d.built, d.x)
	d.refine(d.x)
	d.buildLists()
	d.interact()
}

// The trajectory does not depend on the number of workers, nor on saving and restoring
// the state in between.
func TestMotionDependsOnItsStateAlone(t *testing.T) {
	t.Parallel()
	m := mixed(t, 6, Vec{10, 12, 40})
	one := setOut(t, m, 1)
	one.Pull(0.01)
	one.advance(t, 70)
	state := NewArchive(nil)
	one.Archive(state)
	listed := one.lists()
	one.advance(t, 80)
	for cores := 1; cores <= 3; cores++ {
		whole := setOut(t, m, cores)
		whole.Pull(0.01)
		whole.advance(t, 150)
		if !slices.Equal(whole.x, one.x) || !slices.Equal(whole.v, one.v) {
			t.Errorf("with %d workers, positions are others", cores)
		}
		later := resumed(t, m, state, cores)
		if !reflect.DeepEqual(later.lists(), listed) {
			t.Errorf("after a restart with %d workers, the lists are not those of the positions for which they had been built", cores)
		}
		later.Pull(0.01)
		later.advance(t, 80)
		if !slices.Equal(later.x, one.x) || !slices.Equal(later.v, one.v) {
			t.Errorf("after a restart with %d workers, positions are others", cores)
		}
	}
}

// lists returns copies of the lists of all domains, before pruning.
func (d *Motion) lists() (all []pairList) {
	for _, kind := range []*domains{d.ashbaughHatch, d.debyeHueckel} {
		for k := range kind.domain {
			l := &kind.domain[k].pairList
			all = append(all, pairList{slices.Clone(l.start), slices.Clone(l.tiles)})
		}
	}
	return all
}

func TestManyChainsConserveEnergy(t *testing.T) {
	t.Parallel()
	m := mixed(t, 4, Vec{10, 10, 14})
	d := setOut(t, m, 2)
	d.advance(t, enginetest.Length(500, 2000, 50_000)) // with friction
	for model := range d.baths {
		bath := newThermostat(model, 0)
		d.baths[model] = &bath
	}
	freedoms := 3 * float64(m.Size())
	total := func() float64 {
		before := d.Temperature()
		potential := d.Sums().Energy()
		d.advance(t, 1)
		return potential + freedoms/2*gasConstant*(before+d.Temperature())/2
	}
	first := total()
	d.advance(t, enginetest.Length(1000, 5_000, 200_000))
	perFreedom := (total() - first) / freedoms / m.shared.kT
	t.Logf("energy changed by %.2g kT for each degree of freedom", perFreedom)
	if math.Abs(perFreedom) > 1e-3 {
		t.Error("energy is not conserved")
	}
}

// Packed random walks do not overlap and lie between the given z limits.
func TestPackedChainsKeepApart(t *testing.T) {
	t.Parallel()
	m := mixed(t, 6, Vec{10, 10, 60})
	x, err := Pack(m, 3, 1, 22, 38)
	must.OK(t, err)
	if len(x) != m.Size() {
		t.Fatalf("%d positions of %d beads", len(x), m.Size())
	}
	for i := range x {
		if x[i].Z < 22-0.1 || x[i].Z > 38+0.1 {
			t.Fatalf("bead %d is at height %g", i, x[i].Z)
		}
		for j := range i {
			least := 0.379 - 0.1 // shake moves each bead slightly
			if r := m.MinimumImage(x[i].Sub(x[j])).Norm(); r < least {
				t.Fatalf("beads %d and %d are %g nm apart", i, j, r)
			}
		}
	}
	other, err := Pack(m, 3, 2, 22, 38)
	if err != nil || slices.Equal(x, other) {
		t.Errorf("another replica begins alike, or %v", err)
	}
	if _, err := Pack(m, 3, 1, 22, 23); err == nil {
		t.Error("no complaint about a slit of 1 nm")
	}
}
