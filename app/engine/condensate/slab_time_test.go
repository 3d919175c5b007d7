package condensate

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"molrun/app/engine/md"
	"molrun/app/engine/store"
	"molrun/app/test/must"
)

// layered returns the results of a run with one replica, whose beads all lie in a layer
// of the given thickness in nm in the middle of a box of 9 x 9 x 60 nm.
func layered(t *testing.T, steps int, thickness float64) *results {
	settings := fmt.Sprintf(`{"components":[{"sequence":"GFYRGSYDGFYRGSYDGFYRGSYD","copies":60}],"box_nm":[9,9,60],"equilibration":0.3,"steps":%d}`, steps)
	m := newSimulation(settingsOf(t, settings), t.TempDir(), io.Discard)
	t.Cleanup(m.team.Close)
	rep := m.New(1)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		x := make([]md.Vec, m.mix.Size())
		for i := range x {
			x[i] = md.Vec{X: 9 * rng.Float64(), Y: 9 * rng.Float64(), Z: 30 + thickness*(rng.Float64()-0.5)}
		}
		rep.profile.AddFrame(m.mix, x)
	}
	return &results{m, []*replica{rep}}
}

// A slab without a plateau is undecided and never converged.
func TestSlabsThatDoNotTell(t *testing.T) {
	t.Parallel()
	const short, long = 300_000, 400_000
	for name, tt := range map[string]struct {
		steps              int
		thickness          float64
		condensed, reason  string
		settled            bool
		said, neverPrinted string
	}{
		"thin":          {long, 2, "null", "slab thinner than its interfaces", false, "undecided whether the chains condense: slab thinner", "do not condense"},
		"full":          {long, 57, "null", "the dense phase and its interfaces fill the box", false, "undecided whether the chains condense: the dense phase", "do not condense"},
		"even":          {long, 60, "false", "the concentration is about the same all along the box", true, "the chains do not condense under these conditions: the concentration is", "undecided"},
		"even too soon": {short, 60, "null", "not converged", false, "undecided whether the chains condense: not converged: the concentration is about the same", "do not condense"},
		"slab":          {long, 12, "true", "", true, "dilute below", "undecided"},
	} {
		r := layered(t, tt.steps, tt.thickness)
		s := &summary{Complete: true}
		s.Results.Components = make([]resultView, 1)
		settled := show(r, s)
		text, err := json.Marshal(s.metrics())
		must.OK(t, err)
		var m struct {
			Condensed json.RawMessage
			Reason    string `json:"condensed_reason"`
		}
		must.OK(t, json.Unmarshal(text, &m))
		if settled != tt.settled || string(m.Condensed) != tt.condensed || m.Reason != tt.reason || !strings.HasPrefix(s.Results.Reason, tt.reason) {
			t.Errorf("%s: settled %v, %s", name, settled, text)
		}
		if said := strings.Join(s.sentences(), "\n"); !strings.Contains(said, tt.said) || strings.Contains(said, tt.neverPrinted) {
			t.Errorf("%s: %s", name, said)
		}
	}
}

// show evaluates a run with precise chain sizes and reports whether it is converged.
func show(r *results, s *summary) bool {
	s.Results.Converged = r.findPhases(s, true)
	if s.Results.Condensed != nil && *s.Results.Condensed {
		r.addPhases(s)
	}
	return s.Results.Converged
}

// Only a flat profile of a converged run shows that chains do not condense.
func TestFlatProfilesOfUnconvergedRunsDoNotTell(t *testing.T) {
	t.Parallel()
	r := layered(t, 400_000, 60)
	for name, tt := range map[string]struct{ complete, sizes, want bool }{
		"converged": {true, true, true}, "running": {false, true, false}, "sizes unknown": {true, false, false},
	} {
		s := &summary{Complete: tt.complete}
		settled := r.findPhases(s, tt.sizes)
		if known := s.Results.Condensed != nil; known != tt.want || settled != tt.want {
			t.Errorf("%s: known %v, settled %v: %s", name, known, settled, s.Results.Reason)
		}
	}
}

// A slab that dissolves in the second half of a run is neither flat nor converged.
func TestProfilesThatChangeDoNotTell(t *testing.T) {
	t.Parallel()
	thick, even := newSlabSystem(30, 1.5, []float64{6.33}, []float64{4}), newSlabSystem(30, 1.5, []float64{4.7}, []float64{4.7})
	p := NewProfile(thick.Mixture)
	for k := range 200 {
		s := thick
		if k >= 120 {
			s = even
		}
		p.AddFrame(thick.Mixture, s.frame()[:thick.Size()])
	}
	if f := Evaluate([]*Profile{p}); f.Separated || !f.Undecided {
		t.Errorf("%+v", f)
	}
}

// The concentrations of a run that is not converged have errors of at least half the
// difference between its two halves, and all files and the log give the same errors.
func TestErrorsOfUnconvergedConcentrationsAreWidened(t *testing.T) {
	t.Parallel()
	r := layered(t, 400_000, 12)
	rep := r.replicas[0]
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 { // the same slab, but thicker and thus less dense
		x := make([]md.Vec, r.mix.Size())
		for i := range x {
			x[i] = md.Vec{Z: 30 + 16*(rng.Float64()-0.5)}
		}
		rep.profile.AddFrame(r.mix, x)
	}
	s := &summary{Complete: true, Settings: r.settingsView()}
	s.Results.Components = make([]resultView, 1)
	if show(r, s) {
		t.Error("converged")
	}
	c := s.phases.Components[0]
	p := s.Results.Components[0].Phases
	if se := float64(p.Dense.SE); !(se >= math.Abs(c.Dense.Drift)/2) || se <= c.Dense.SE {
		t.Errorf("error of the dense phase %g, drift %g, standard error %g", se, c.Dense.Drift, c.Dense.SE)
	}
	row := s.table()[1]
	if row[4] != p.Dense.SE.String() || row[len(row)-1] != "false" || s.metrics().DenseSE != p.Dense.SE {
		t.Errorf("components.csv %v, metrics.json %v, summary.json %v", row, s.metrics().DenseSE, p.Dense.SE)
	}
	if text := strings.Join(s.sentences(), "\n"); !strings.Contains(text, store.WithError(float64(p.Dense.Mean), float64(p.Dense.SE))) || !strings.Contains(text, "(not converged)") {
		t.Error(text)
	}
}

// Two chains that never met have no dissociation constant.
func TestPairWithoutContactsSaysSo(t *testing.T) {
	nan := store.Figure(math.NaN())
	s := &summary{Results: resultsView{Converged: true, Pair: &pairView{Virial: 5, VirialSE: 1, VirialMass: 0.01, VirialMassSE: 0.002, Dissociation: nan, DissociationSE: nan}}}
	if said := strings.Join(s.sentences(), "\n"); said != "second virial coefficient 5±1 nm³ (0.01±0.002 mL mol/g²), dissociation constant unknown" {
		t.Error(said)
	}
}

// A slab is not converged, however steady, if the run is too short for a chain to leave
// it.
func TestSlabsNeedTime(t *testing.T) {
	t.Parallel()
	for steps, want := range map[int]bool{300_000: false, 400_000: true} {
		r := layered(t, steps, 12)
		s := &summary{Complete: true}
		s.Results.Components = make([]resultView, 1)
		if got := show(r, s); got != want || !*s.Results.Condensed {
			t.Errorf("%d steps: settled %v, condensed %v: %s", steps, got, *s.Results.Condensed, s.Results.Reason)
		}
		p, v := s.Results.Components[0].Phases, s.Results.Slab
		for name, f := range map[string]store.Figure{"component": p.Bound, "mass": p.BoundMass, "transfer": p.TransferBound.KT, "slab": v.DiluteMass} {
			if got := !math.IsNaN(float64(f)); got != want {
				t.Errorf("%d steps: bound of the %s %v", steps, name, f)
			}
		}
		if said := strings.Join(s.sentences(), "\n"); strings.Contains(said, "dilute unknown") == want {
			t.Errorf("%d steps: %s", steps, said)
		}
	}
}
