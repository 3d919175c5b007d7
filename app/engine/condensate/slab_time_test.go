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

// layered is what a run shows that has one replica with samples of chains whose beads lie in a layer of some
// thickness in nm in the middle of a box of 9 x 9 x 60 nm.
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

// What a slab without a plateau shows is neither a condensate nor none, and never converged.
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
		"thin":          {long, 2, "null", "slab thinner than its interfaces", false, "not known whether the chains condense: slab thinner", "no condensate"},
		"full":          {long, 57, "null", "the dense phase and its interfaces fill the box", false, "not known whether the chains condense: the dense phase", "no condensate"},
		"even":          {long, 60, "false", "the concentration is about the same all along the box", true, "no condensate: the concentration is", "not known"},
		"even too soon": {short, 60, "false", "the concentration is about the same all along the box", false, "no condensate: the concentration is", "not known"},
		"slab":          {long, 12, "true", "", true, "dilute below", "not known"},
	} {
		r := layered(t, tt.steps, tt.thickness)
		s := &summary{}
		s.Results.Components = make([]resultView, 1)
		settled := r.addPhases(s, true)
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

// Two chains that never met have no dissociation constant.
func TestPairWithoutContactsSaysSo(t *testing.T) {
	nan := store.Figure(math.NaN())
	s := &summary{Results: resultsView{Pair: &pairView{Virial: 5, VirialSE: 1, Dissociation: nan, DissociationSE: nan}}}
	if said := strings.Join(s.sentences(), "\n"); said != "second virial coefficient 5±1 nm³, dissociation constant unknown" {
		t.Error(said)
	}
}

// A slab of which no chain had the time to come loose is not settled, however steady it looks.
func TestSlabsNeedTime(t *testing.T) {
	t.Parallel()
	for steps, want := range map[int]bool{300_000: false, 400_000: true} {
		r := layered(t, steps, 12)
		s := &summary{}
		s.Results.Components = make([]resultView, 1)
		if got := r.addPhases(s, true); got != want || !*s.Results.Condensed {
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
