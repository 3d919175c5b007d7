package condensate

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"molrun/app/engine/md"
	"molrun/app/engine/store"
)

// A slab of which no chain had the time to come loose is not settled, however steady it looks.
func TestSlabsNeedTime(t *testing.T) {
	t.Parallel()
	for steps, want := range map[int]bool{300_000: false, 400_000: true} {
		settings := fmt.Sprintf(`{"components":[{"sequence":"GFYRGSYDGFYRGSYDGFYRGSYD","copies":60}],"box_nm":[9,9,60],"equilibration":0.3,"steps":%d}`, steps)
		r := newRun(settingsOf(t, settings), t.TempDir(), io.Discard)
		defer r.team.Close()
		rep := newReplica(r.system, 1)
		rng := rand.New(rand.NewPCG(1, 1))
		for range 200 { // steady layers of 12 nm
			x := make([]md.Vec, r.mix.Size())
			for i := range x {
				x[i] = md.Vec{X: 9 * rng.Float64(), Y: 9 * rng.Float64(), Z: 24 + 12*rng.Float64()}
			}
			rep.profile.Add(r.mix, x)
		}
		r.replicas = append(r.replicas, rep)
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
