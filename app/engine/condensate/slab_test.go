package condensate

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"molrun/app/engine/md"
	"molrun/app/test/must"
)

var conditions = md.Conditions{Temperature: 293, PH: 7, IonicStrength: 0.15, Friction: 0.01, ChargedTermini: true}

// slabSystem is a mixture with a known concentration profile: a slab with tanh-shaped
// interfaces that moves through the box.
type slabSystem struct {
	*md.Mixture
	thickness, length float64 // nm; length is the tanh parameter
	dense, dilute     []float64
	random            *rand.Rand
	at                [][]float64
	even              bool // evenly spaced beads along z, as in a liquid; otherwise all beads of a chain share one random position
}

const boxEdge, boxLength = 15.0, 100.0

// newSlabSystem returns a system with the number of chains given by the concentrations in
// mM.
func newSlabSystem(thickness, length float64, dense, dilute []float64) *slabSystem {
	s := &slabSystem{thickness: thickness, length: length, dense: dense, dilute: dilute, random: rand.New(rand.NewPCG(1, 2))}
	var all []md.Component
	for c := range dense {
		all = append(all, md.Component{Model: md.NewModel([]string{"GSGSG", "RYRYRYRY"}[c], conditions), Copies: int(math.Round(s.chains(c)))})
	}
	for c := range dense {
		s.at = append(s.at, s.heights(c))
	}
	s.Mixture = md.NewMixture(all, md.Vec{X: boxEdge, Y: boxEdge, Z: boxLength})
	return s
}

// chains returns the number of chains of a component, not necessarily an integer.
func (s *slabSystem) chains(c int) float64 {
	return (s.dense[c]*s.thickness + s.dilute[c]*(boxLength-s.thickness)) * boxEdge * boxEdge / MilliMol
}

// frame draws the z position of each bead, or one for all beads of a chain unless even is
// set.
func (s *slabSystem) frame() []md.Vec {
	x := make([]md.Vec, s.Size())
	away := boxLength * (3*s.random.Float64() - 1) // also outside the box
	chain := 0
	for c, component := range s.Components {
		heights := s.at[c]
		beads := component.Copies * component.Model.Size()
		for k := range beads {
			from, to := s.Span(chain + k/component.Model.Size())
			i := from + k%(to-from)
			switch u := s.random.Float64(); {
			case s.even:
				x[i].Z = away + heights[int((float64(k)+u)/float64(beads)*float64(len(heights)))]
			case i == from:
				x[i].Z = away + heights[int(u*float64(len(heights)))]
			default:
				x[i].Z = x[from].Z
			}
		}
		chain += component.Copies
	}
	return x
}

// heights returns z at even steps of the cumulative amount of a component, in increasing
// order.
func (s *slabSystem) heights(c int) (all []float64) {
	const parts = 20_000
	sum, step := 0.0, boxLength/parts
	for range 2 { // first the total, then the quantiles
		whole := sum
		sum, all = 0, all[:0]
		for i := range parts {
			z := (float64(i)+0.5)*step - boxLength/2
			sum += s.dilute[c] + (s.dense[c]-s.dilute[c])*(1-math.Tanh((math.Abs(z)-s.thickness/2)/s.length))/2
			for whole > 0 && (float64(len(all))+0.5)*whole/parts <= sum {
				all = append(all, z)
			}
		}
	}
	return all
}

func (s *slabSystem) profile(frames int) *Profile {
	p := NewProfile(s.Mixture)
	for range frames {
		p.AddFrame(s.Mixture, s.frame())
	}
	return p
}

func within(t *testing.T, what string, got, want, error float64) {
	t.Helper()
	if !(math.Abs(got-want) <= error) {
		t.Errorf("%s is %.4g, want %.4g ± %.2g", what, got, want, error)
	}
}

func TestKnownPhasesAreFound(t *testing.T) {
	s := newSlabSystem(30, 1.5, []float64{20, 2}, []float64{0.5, 1})
	s.even = true
	f := Evaluate([]*Profile{s.profile(150), s.profile(200)})
	if !f.Separated {
		t.Fatal(f.Reason)
	}
	within(t, "the thickness", f.Upper.Z-f.Lower.Z, 30, 0.3)
	within(t, "the lower width", f.Lower.Width, 1.5*widths, 0.5)
	within(t, "the upper width", f.Upper.Width, 1.5*widths, 0.5)
	for c, want := range []Coexistence{
		{Dense: md.Estimate{Mean: 20}, Dilute: md.Estimate{Mean: 0.5}},
		{Dense: md.Estimate{Mean: 2}, Dilute: md.Estimate{Mean: 1}},
	} {
		got := f.Components[c]
		exact := s.chains(c) // the number of chains is rounded
		scale := math.Round(exact) / exact
		want.Dense.Mean, want.Dilute.Mean = want.Dense.Mean*scale, want.Dilute.Mean*scale
		if got.Bound || !(got.Dense.SE > 0) || !(got.Dilute.SE > 0) {
			t.Errorf("component %d: %+v", c, got)
		}
		within(t, "dense", got.Dense.Mean, want.Dense.Mean, 4*got.Dense.SE+0.005*want.Dense.Mean)
		within(t, "dilute", got.Dilute.Mean, want.Dilute.Mean, 4*got.Dilute.SE+0.005*want.Dilute.Mean)
		within(t, "transfer", got.Transfer, math.Log(want.Dilute.Mean/want.Dense.Mean), 4*got.TransferSE+0.01)
	}
}

func TestCurvesAreFitted(t *testing.T) {
	levels := make([]float64, 100)
	for i := range levels {
		levels[i] = 12 - 9*math.Tanh(((float64(i)+0.5)*0.5-17.3)/2.1)
	}
	c := fitCurve(0.5, levels)
	within(t, "its place", c.at, 17.3, 1e-3)
	within(t, "its length", c.length, 2.1, 1e-3)
	within(t, "the inner level", c.inner, 21, 1e-3)
	within(t, "the outer level", c.outer, 3, 1e-3)
	within(t, "what is left", c.misfit, 0, 1e-4)
}

// Chains at random positions leave gaps, and an interface looks wider than it is.
// Aligning frames to each other's gaps must not widen it further.
func TestFewChainsKeepTheirInterface(t *testing.T) {
	s := newSlabSystem(30, 1, []float64{10}, []float64{0.2})
	f := Evaluate([]*Profile{s.profile(300)})
	if wide := (f.Lower.Width + f.Upper.Width) / 2; !f.Separated || wide > 4.5*widths {
		t.Errorf("%d chains have interfaces of %.1f nm: %s", s.Chains(), wide, f.Reason)
	}
}

func TestErrorsAreThoseOfRepeatedRuns(t *testing.T) {
	var means md.Series
	ses := 0.0
	s := newSlabSystem(30, 1.5, []float64{20}, []float64{0.5})
	for range 40 {
		c := Evaluate([]*Profile{s.profile(128)}).Components[0]
		means.Add(c.Dilute.Mean)
		ses += c.Dilute.SE / 40
	}
	spread := md.Pool([]md.Series{means}).SD
	if ratio := ses / spread; ratio < 0.7 || ratio > 1.6 {
		t.Errorf("errors of %.3g mM, and the runs differ by %.3g", ses, spread)
	}
}

func TestChainsThatDoNotCondense(t *testing.T) {
	for name, s := range map[string]*slabSystem{
		"the same everywhere": newSlabSystem(30, 1.5, []float64{4}, []float64{4}),
		"nearly the same":     newSlabSystem(30, 1.5, []float64{4.5}, []float64{4}),
	} {
		if f := Evaluate([]*Profile{s.profile(100)}); f.Separated || f.Undecided || !strings.Contains(f.Reason, "about the same all along the box") || f.Components != nil {
			t.Errorf("%s: %+v", name, f)
		}
	}
	s := newSlabSystem(40, 1.5, []float64{2.2}, []float64{2})
	for range 10 { // random samples
		if f := Evaluate([]*Profile{s.profile(20)}); f.Separated {
			t.Errorf("a chance: %+v", f)
		}
	}
}

// A dense region without a plateau, or with large errors, is no evidence that chains do
// not condense.
func TestUndecidedProfiles(t *testing.T) {
	thin, full := newSlabSystem(5, 1.5, []float64{20}, []float64{0.1}), newSlabSystem(75, 3, []float64{20}, []float64{0.5})
	full.even = true
	for name, tt := range map[string]struct {
		s      *slabSystem
		frames int
		reason string
	}{
		"a thin slab":  {thin, 200, "slab thinner than its interfaces: "},
		"a hump":       {newSlabSystem(2, 5, []float64{20}, []float64{0.1}), 200, "use more chains or a smaller cross-section"},
		"a full box":   {full, 50, "fill the box, which leaves no dilute phase; use a longer box"},
		"10 frames":    {newSlabSystem(30, 1.5, []float64{20}, []float64{0.5}), 10, "too few samples for error estimates"},
		"a few frames": {newSlabSystem(30, 1.5, []float64{0.4}, []float64{0.1}), 20, " "},
		"few chains":   {newSlabSystem(30, 1.5, []float64{0.1}, []float64{0.1}), 100, " "},
	} {
		if f := Evaluate([]*Profile{tt.s.profile(tt.frames)}); f.Separated || !f.Undecided || !strings.Contains(f.Reason, tt.reason) || f.Components != nil {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// If the dilute phases of replicas differ by more than their errors, only a bound is
// given, which is above each of them.
func TestBoundsKnowThatReplicasDiffer(t *testing.T) {
	s := newSlabSystem(30, 0.2, []float64{20}, []float64{0})
	s.even = true
	empty := s.profile(100)
	other := newSlabSystem(30, 0.2, []float64{20}, []float64{0.05})
	one := MilliMol / (boxEdge * boxEdge * (boxLength - 30))
	if c := Evaluate([]*Profile{empty, other.profile(100)}).Components[0]; !c.Bound || c.Dilute.Mean < one/2 {
		t.Errorf("%+v; one chain is %.3g mM", c, one)
	}
}

func TestEmptyDilutePhaseHasABound(t *testing.T) {
	s := newSlabSystem(30, 0.2, []float64{20}, []float64{0})
	s.even = true
	c := Evaluate([]*Profile{s.profile(100)}).Components[0]
	one := MilliMol / (boxEdge * boxEdge * (boxLength - 30))
	if !c.Bound || c.Dilute.Mean < 3*one/16 || c.Dilute.Mean > 3*one/16*1.3 || !math.IsNaN(c.Dilute.SE) || !(c.Transfer < -5) {
		t.Errorf("%+v; one chain is %.3g mM", c, one)
	}
	// Chains were outside the slab in only one interval, so by chance there could have
	// been more or fewer.
	s = newSlabSystem(30, 0.2, []float64{20}, []float64{0})
	p, once := NewProfile(s.Mixture), newSlabSystem(30, 0.2, []float64{19}, []float64{20. * 30 / 70 / 20})
	s.even, once.even = true, true
	for n := range 100 {
		if n >= 40 && n < 46 {
			p.AddFrame(once.Mixture, once.frame()[:s.Size()])
		} else {
			p.AddFrame(s.Mixture, s.frame())
		}
	}
	mean, seen := 0.0, 0.0
	c = Evaluate([]*Profile{p}).Components[0]
	for _, layer := range Mean(p) {
		if math.Abs(layer.Z) > 20 {
			mean, seen = mean+layer.MilliMol[0], seen+1
		}
	}
	if mean /= seen; mean == 0 || !c.Bound || c.Dilute.Mean < 2*mean {
		t.Errorf("the bound is %.3g mM, and the mean %.3g", c.Dilute.Mean, mean)
	}
	const truth = 0.004 // mM, about one chain outside the slab in 25 observations
	s = newSlabSystem(30, 0.2, []float64{20}, []float64{truth})
	below := 0
	for range 40 {
		s.random = rand.New(rand.NewPCG(s.random.Uint64(), 1))
		if c := Evaluate([]*Profile{s.profile(40)}).Components[0]; c.Bound && c.Dilute.Mean < truth {
			below++
		}
	}
	if below > 4 {
		t.Errorf("%d of 40 bounds are below the concentration", below)
	}
}

// Chain ends protruding from the dense phase in every frame are not a dilute phase, even
// if their number is known precisely.
func TestEndsOfChainsAreNoDilutePhase(t *testing.T) {
	s := newSlabSystem(30, 0.2, []float64{20}, []float64{0})
	s.even = true
	p := NewProfile(s.Mixture)
	for range 200 {
		x := s.frame()
		if s.random.Float64() < 0.15 {
			x[4].Z = x[4].Z - boxLength/2 + s.random.Float64() // one bead of five
		}
		p.AddFrame(s.Mixture, x)
	}
	one := MilliMol / (boxEdge * boxEdge * (boxLength - 30))
	if c := Evaluate([]*Profile{p}).Components[0]; !c.Bound || c.Dilute.Mean < 3./64*one {
		t.Errorf("%+v; one chain is %.3g mM", c, one)
	}
}

func TestFramesMayBeAddedInParts(t *testing.T) {
	s := newSlabSystem(20, 1, []float64{15}, []float64{1})
	var frames [][]md.Vec
	for range 150 {
		frames = append(frames, s.frame())
	}
	whole, first := NewProfile(s.Mixture), NewProfile(s.Mixture)
	for i, x := range frames {
		whole.AddFrame(s.Mixture, x)
		if i < 70 {
			first.AddFrame(s.Mixture, x)
		}
	}
	kept := md.NewArchive(nil)
	first.Archive(kept)
	second := NewProfile(s.Mixture)
	second.Archive(md.OpenArchive(kept.Bytes()))
	for _, x := range frames[70:] {
		second.AddFrame(s.Mixture, x)
	}
	if whole.Frames() != 150 || second.Frames() != 150 || len(whole.blocks) != len(second.blocks) {
		t.Fatalf("%d and %d frames", whole.Frames(), second.Frames())
	}
	for i, layer := range Mean(whole) {
		if layer.MilliMol[0] != Mean(second)[i].MilliMol[0] {
			t.Fatalf("layer %d: %v and %v", i, layer, Mean(second)[i])
		}
	}
	total := 0.0
	for _, block := range whole.blocks {
		for _, n := range block[:whole.bins] {
			total += n
		}
	}
	within(t, "the number of chains", total/150, float64(s.Chains()), 1e-6)
}

func TestFramesAreAligned(t *testing.T) {
	reference := []float64{0, 0, 1, 5, 9, 5, 2, 0}
	for want := range reference {
		frame := make([]float64, 8)
		for i, n := range reference {
			frame[(i+8-want)%8] = n
		}
		must.Equal(t, "moved by", bestShift(reference, frame), want)
	}
	p := &Profile{bins: 8}
	if got := p.centered([]float64{9, 5, 0, 0, 0, 0, 0, 5}); got[4] != 9 || got[3] != 5 || got[5] != 5 {
		t.Errorf("laid into the middle: %v", got)
	}
}
