package condensate

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"molrun/app/engine/md"
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
	}
}
