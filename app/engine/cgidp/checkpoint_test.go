package cgidp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"molrun/app/engine/run"
	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

var engine = enginetest.Engine{
	Run: func(ctx context.Context, settings, dir string, log io.Writer, saveEvery time.Duration) error {
		s, faults := Parse([]byte(settings), nil)
		if len(faults) > 0 {
			return fmt.Errorf("%v", faults)
		}
		m := newSimulation(s, dir, log)
		m.SaveEvery = saveEvery
		return m.runAll(ctx)
	},
	Stop:   stop,
	Folder: "Hst5",
}

func TestMain(m *testing.M) { engine.Main(m) }

// stop runs one replica at a time, interrupts the run after the given number of bursts,
// and saves only then.
func stop(t testing.TB, settings, dir string, bursts int) {
	t.Helper()
	m := newSimulation(settingsOf(t, settings), dir, io.Discard)
	m.Workers, m.SaveEvery = 1, 24*time.Hour
	err := m.Compute(&enginetest.StopAfter{Context: t.Context(), Bursts: bursts})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// ofSteps returns a function that returns settings for a number of cores.
func ofSteps(steps int) func(cores int) string {
	return func(cores int) string {
		return fmt.Sprintf(`{"sequences":["%s","GSGSGSGSGSGSGS"],"names":["Hst5","short"],"steps":%d,"replicas":2,
			"frame_every":700,"sample_every":50,"seed":11,"cores":%d}`, hst5, steps, cores)
	}
}

func TestResumeAfterKill(t *testing.T) {
	t.Parallel()
	engine.ResumesAfterKills(t, ofSteps(enginetest.Length(4000, 30_000, 300_000)), enginetest.Length(2, 8, 40))
}

func TestResume(t *testing.T) {
	t.Parallel()
	cases := [][]int{{7, 3, 2}, {0}, {90}, {1000}} // in the last case, only the final files are left to write
	if enginetest.RaceDetector {
		cases = cases[:1]
	}
	engine.ResumesAfterStops(t, ofSteps(enginetest.Length(4000, 30_000, 30_000)), cases...)
}

func TestResumeAfterDamage(t *testing.T) {
	t.Parallel()
	settings := `{"sequences":["` + hst5 + `"],"names":["Hst5"],"steps":3000,"frame_every":300,"seed":%d}`
	engine.ResumesAfterDamage(t, settings, 1, []enginetest.Damage{
		{Name: "none", Do: enginetest.Undamaged, Log: "resumes from checkpoint.bin, with 0 of 1 replica finished and 1000 of 3000 steps done"},
		{
			Name: "last", Do: enginetest.Spoil(enginetest.Flip, enginetest.CheckpointFile),
			Log: "cannot use checkpoint.bin: corrupt\nHst5 resumes from checkpoint.old.bin, with 0 of 1 replica finished and 500 of 3000 steps done",
		},
		{Name: "trajectory cut short", Do: enginetest.Spoil(enginetest.CutTo(1000), run.TrajectoryName(1)), Log: "traj.dcd is missing frames"},
		{Name: "no trajectory", Do: enginetest.Removed(run.TrajectoryName(1)), Log: "warning: Hst5 starts from the beginning"},
		{Name: "rows beyond the checkpoint", Log: "resumes from checkpoint.bin", Do: func(t *testing.T, folder string) {
			must.OK(t, os.WriteFile(filepath.Join(folder, run.SeriesFile), []byte("no rows"), 0o600))
		}},
	})
}
