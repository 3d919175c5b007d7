package condensate

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"molrun/app/engine/md"
	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

func systemOf(t *testing.T, settings string) *system {
	t.Helper()
	return newSystem(settingsOf(t, settings))
}

// scattered places beads at random, including outside the box.
func scattered(y *system, within md.Vec) []md.Vec {
	random := rand.New(rand.NewPCG(1, 2))
	x := make([]md.Vec, y.mix.Size())
	for i := range x {
		x[i] = md.Vec{X: within.X * (3*random.Float64() - 1), Y: within.Y * (3*random.Float64() - 1), Z: within.Z * (3*random.Float64() - 1)}
	}
	return x
}

// Contacts match a search over all pairs across periodic boundaries, even in a box so
// large that its cells exceed the contact distance.
func TestContactsAgainstAllPairs(t *testing.T) {
	for _, box := range []string{"[9,10.3,11.9]", "[140,150,160]"} {
		t.Run(box, func(t *testing.T) { compareContacts(t, box) })
	}
}

func compareContacts(t *testing.T, box string) {
	y := systemOf(t, `{"components":[{"sequence":"GSGSGSG","copies":30},{"sequence":"YRYRY","copies":20}],"protocol":"bulk","box_nm":`+box+`}`)
	x := scattered(y, md.Vec{X: min(y.Box.X, 5), Y: min(y.Box.Y, 5), Z: min(y.Box.Z, 5)})
	c := newContacts(y)
	got := c.findClusters(x, true)
	groups, bound := newForest(50), map[int]bool{}
	var same, other, second [7][7]float64
	for p := range 50 {
		for q := range p {
			first, _ := y.mix.Span(p)
			from, _ := y.mix.Span(q)
			for i := range y.mix.Chain(p).Size() {
				for j := range y.mix.Chain(q).Size() {
					if y.mix.MinimumImage(x[first+i].Sub(x[from+j])).Norm() >= 1 {
						continue
					}
					bound[p], bound[q] = true, true
					groups.join(int32(p), int32(q))
					switch {
					case p < 30:
						same[i][j] += 1. / 30
						same[j][i] += 1. / 30
					case q < 30:
						other[j][i] += 1. / 30
					default:
						second[i][j] += 1. / 20
						second[j][i] += 1. / 20
					}
				}
			}
		}
	}
	enginetest.Near(t, "bound", got.bound, float64(len(bound))/50, 1e-12)
	enginetest.Near(t, "largest", got.largest, float64(groups.largest())/50, 1e-12)
	if len(bound) < 5 {
		t.Fatalf("%d chains have contacts", len(bound))
	}
	for i := range 7 {
		for j := range 7 {
			enginetest.Near(t, "same", c.mean(0, 0, i, j), same[i][j], 1e-12)
			if j < 5 {
				enginetest.Near(t, "other", c.mean(0, 1, i, j), other[i][j], 1e-12)
				if i < 5 {
					enginetest.Near(t, "second", c.mean(1, 1, i, j), second[i][j], 1e-12)
				}
			}
		}
	}
}

func TestForest(t *testing.T) {
	f := newForest(6)
	f.join(0, 3)
	f.join(4, 5)
	f.join(3, 5)
	if f.root(4) != f.root(0) || f.root(1) == f.root(0) || f.largest() != 4 {
		t.Errorf("%v: largest %d", f.parent, f.largest())
	}
}

// Chains stay whole, wherever they have moved.
func TestWholeChainsLieInTheBox(t *testing.T) {
	y := systemOf(t, `{"components":[{"sequence":"GSGSGSG","copies":30}],"box_nm":[9,9,40]}`)
	x := scattered(y, y.Box)
	centres := y.centres(x, 17)
	whole := y.whole(x, centres)
	for k, c := range centres {
		if math.Abs(c.X) > 4.5 || math.Abs(c.Y) > 4.5 || math.Abs(c.Z) > 20 {
			t.Errorf("chain %d is at %v", k, c)
		}
		before, after := md.PartOf(y.mix, x, k), md.PartOf(y.mix, whole, k)
		for i := range before {
			d := after[i].Sub(after[0]).Sub(before[i].Sub(before[0]))
			if d.Norm() > 1e-9 {
				t.Fatalf("chain %d changed by %v", k, d)
			}
		}
		moved := y.mix.MinimumImage(after[0].Sub(before[0]).Sub(md.Vec{X: -4.5, Y: -4.5, Z: 17 - 20}))
		if moved.Norm() > 1e-9 {
			t.Errorf("chain %d was moved by %v too far", k, moved)
		}
	}
}

// Non-interacting chains are nearby with a probability proportional to volume, and the
// virial coefficient of hard spheres is half the excluded volume.
func TestVirial(t *testing.T) {
	y := systemOf(t, `{"components":[{"sequence":"GSGSGSG","copies":2}],"protocol":"dilute","box_nm":[20,20,20]}`)
	ball := 4 * math.Pi / 3 * 1000
	b := y.virial(md.Estimate{Mean: ball / 8000, SE: 0.001})
	enginetest.Near(t, "of ideal chains", b.value, 0, 1e-9)
	const hard = 300. // nm³, excluded volume
	b = y.virial(md.Estimate{Mean: (ball - hard) / (8000 - hard), SE: 0.001})
	enginetest.Near(t, "of hard chains", b.value, hard/2, 1e-9)
	up := y.virial(md.Estimate{Mean: (ball-hard)/(8000-hard) + 0.001})
	enginetest.Near(t, "the error", b.se, math.Abs(up.value-b.value), 0.01*b.se)
	if b := y.virial(md.Estimate{Mean: 1}); !math.IsNaN(b.value) {
		t.Errorf("always nearby: %v", b)
	}
}

// K = [M]²/[D] for pairs in a large volume follows from the states of two chains in a
// small one: Q(D) = d V, Q(M, M) = (m V)²/2 for equal chains, m² V² for different ones.
func TestDissociation(t *testing.T) {
	const d, m = 3., 0.05
	for components, half := range map[string]float64{
		`{"sequence":"GSGSGSG","copies":2}`:                                   2,
		`{"sequence":"GSGSGSG","copies":1},{"sequence":"YSGSGSG","copies":1}`: 1,
	} {
		y := systemOf(t, `{"components":[`+components+`],"protocol":"dilute","box_nm":[20,20,20]}`)
		const volume = 8000
		pairs, free := d*volume, m*m*volume*volume/half
		k := y.dissociation(md.Estimate{Mean: pairs / (pairs + free), SE: 0.001})
		enginetest.Near(t, components, k.value, m*m/d*MilliMol, 1e-9*MilliMol)
		if !(k.se > 0) {
			t.Errorf("its error is %g", k.se)
		}
		if k := y.dissociation(md.Estimate{Mean: 0}); !math.IsNaN(k.value) {
			t.Errorf("never bound: %v", k)
		}
	}
}

// The radius of gyration is averaged by position along z.
func TestSizesByPlace(t *testing.T) {
	y := systemOf(t, `{"components":[{"sequence":"GSGSGSG","copies":4},{"sequence":"YRYRYRY","copies":1}],"box_nm":[9,9,40],"steps":32000,"equilibration":0,"sample_every":100}`)
	s := newSizes(y)
	for range y.plan.samples() {
		s.addFrame([]md.Vec{{Z: -19.9}, {Z: 19.9}, {Z: 4.4}, {Z: -4.4}, {Z: 0}}, []float64{3, 4, 1, 2, 7})
	}
	inner := func(z float64) bool { return math.Abs(z) < 5 }
	outer := func(z float64) bool { return math.Abs(z) >= 5 }
	enginetest.Near(t, "inside", meanSize([]*sizes{s}, 0, inner).Mean, 1.5, 1e-12)
	enginetest.Near(t, "outside", meanSize([]*sizes{s, s}, 0, outer).Mean, 3.5, 1e-12)
	enginetest.Near(t, "the other component", meanSize([]*sizes{s}, 1, inner).Mean, 7, 1e-12)
	if e := meanSize([]*sizes{s}, 1, outer); !math.IsNaN(e.Mean) {
		t.Errorf("nothing outside: %v", e)
	}
	if e := meanSize([]*sizes{s}, 0, inner); !(e.SE >= 0) {
		t.Errorf("%d blocks have no error", sizeBlocks)
	}
}

func TestPlan(t *testing.T) {
	y := systemOf(t, `{"components":[{"sequence":"GSGSGSG","copies":4}],"box_nm":[9,9,40],"steps":1010,"equilibration":0.5,"sample_every":100,"frame_every":200}`)
	var stops []int64
	for step := int64(0); step < y.plan.steps; {
		step += y.plan.untilEvent(step)
		stops = append(stops, step)
	}
	want := []int64{100, 200, 252, 300, 400, 500, 600, 700, 800, 900, 1000, 1010}
	must.Equal(t, "stops at", stops, want)
	if y.plan.discarded != 505 || y.plan.samples() != 5 {
		t.Errorf("%d steps discarded, %d samples", y.plan.discarded, y.plan.samples())
	}
}

// The restraint holds together chains that would otherwise disperse, and it acts only
// during the first half of equilibration.
func TestChainsAreDrawnTogether(t *testing.T) {
	steps := int64(enginetest.Length(8000, 20_000, 20_000))
	// apart returns the mean distance of beads from the box center at the end of the
	// restraint, or at the end of the run.
	apart := func(equilibration float64, withSprings bool) float64 {
		m := newSimulation(settingsOf(t, fmt.Sprintf(`{"components":[{"sequence":"EGEGEGEG","copies":20}],"box_nm":[9,9,60],"steps":%d,"equilibration":%g}`,
			steps, equilibration)), t.TempDir(), io.Discard)
		defer m.team.Close()
		until := steps
		if withSprings {
			until = m.plan.restrained
		}
		r := m.New(1)
		must.OK(t, r.Start())
		defer r.Trajectory.Close()
		for r.Step() < until {
			must.OK(t, r.advance(until-r.Step()))
		}
		sum := 0.0
		for _, at := range r.motion.Positions() {
			sum += math.Abs(r.mix.MinimumImage(md.Vec{Z: at.Z - r.Box.Z/2}).Z)
		}
		return sum / float64(r.mix.Size())
	}
	free, short, parted := apart(0, false), apart(0.9, true), apart(0.9, false)
	if short > free/2 {
		t.Errorf("after springs %.1f nm from the middle, without %.1f nm", short, free)
	}
	if parted < 1.3*short {
		t.Errorf("after the springs ended: %.1f nm from the middle, before: %.1f nm", parted, short)
	}
}

// Each pair of components has its own counts.
func TestContactsOfThreeComponents(t *testing.T) {
	y := systemOf(t, `{"components":[{"sequence":"GSGSG","copies":2},{"sequence":"GSGSGS","copies":2},{"sequence":"GSGSGSG","copies":2}],"box_nm":[9,9,40]}`)
	c := newContacts(y)
	seen := map[int]bool{}
	for a := range 3 {
		for b := a; b < 3; b++ {
			k := c.index(a, b)
			if seen[k] || len(c.counts[k]) != (5+a)*(5+b) {
				t.Errorf("components %d and %d have counts %d", a, b, k)
			}
			seen[k] = true
		}
	}
}

// Chains of large or of small residues fit into the smallest box that the settings allow.
func TestChainsFindPlacesInTheSmallestBox(t *testing.T) {
	for _, c := range []Component{
		{Residues: strings.Repeat("W", 24), Copies: 200},
		{Residues: strings.Repeat("W", 200), Copies: 60},
		{Residues: strings.Repeat("GYFWR", 100), Copies: 12},
		{Residues: strings.Repeat("GS", 100), Copies: 100},
	} {
		s := &Settings{Protocol: Bulk, Components: []Component{c}}
		edge := math.Cbrt(s.minVolume())
		s.Box = md.Vec{X: edge, Y: edge, Z: edge}
		for seed := range uint64(2) {
			if _, err := md.Pack(s.mixture(), seed, 1, 0, edge); err != nil {
				t.Errorf("%d chains of %d %.5s, seed %d: %v", c.Copies, len(c.Residues), c.Residues, seed, err)
			}
		}
		s.Protocol = Slab
		s.Box = md.Vec{X: edge, Y: edge, Z: 10 * edge}
		if _, err := md.Pack(s.mixture(), 1, 1, 0, s.packHeight()); err != nil {
			t.Errorf("a slab of %d chains of %d %.5s: %v", c.Copies, len(c.Residues), c.Residues, err)
		}
	}
}
