package condensate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"molrun/app/engine/run"
	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

var engine = enginetest.Engine{Run: runSaving, Stop: stop}

func runSaving(ctx context.Context, settings, dir string, log io.Writer, saveEvery time.Duration) error {
	s, faults := Parse([]byte(settings), nil)
	if len(faults) > 0 {
		return fmt.Errorf("%v", faults)
	}
	m := newSimulation(s, dir, log)
	defer m.team.Close()
	m.SaveEvery = saveEvery
	return m.runAll(ctx)
}

func TestMain(m *testing.M) { engine.Main(m) }

// stop interrupts the run after the given number of bursts and saves only then, however
// long the run takes.
func stop(t testing.TB, settings, dir string, bursts int) {
	t.Helper()
	err := runSaving(&enginetest.StopAfter{Context: t.Context(), Bursts: bursts}, settings, dir, io.Discard, 24*time.Hour)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("after %d bursts: %v", bursts, err)
	}
}

// ofSteps returns a function that returns settings for a number of cores.
func ofSteps(steps int) func(cores int) string {
	return func(cores int) string { return mixed(steps, cores) }
}

func TestResumeAfterKill(t *testing.T) {
	t.Parallel()
	engine.ResumesAfterKills(t, ofSteps(enginetest.Length(1000, 3000, 20_000)), enginetest.Length(2, 6, 20))
}

// Here a burst is at most 50 steps, the interval between samples.
func TestResume(t *testing.T) {
	t.Parallel()
	cases := [][]int{{0, 1, 5, 2}, {3, 14}, {17, 9}} // stops in the first and in the second replica
	if enginetest.RaceDetector {
		cases = cases[2:]
	}
	engine.ResumesAfterStops(t, ofSteps(1000), cases...)
}

func TestResumeAfterDamage(t *testing.T) {
	t.Parallel()
	settings := `{"components":[{"name":"a","sequence":"GFYRGSYD","copies":20}],"box_nm":[9,9,40],"steps":1000,"sample_every":50,"frame_every":100,"seed":%d}`
	engine.ResumesAfterDamage(t, settings, 5, []enginetest.Damage{
		{Name: "none", Do: enginetest.Undamaged, Log: "resumes from checkpoint.bin, with 0 of 1 replica finished and 450 of 1000 steps done"},
		{Name: "last", Do: enginetest.Spoil(enginetest.Flip, enginetest.CheckpointFile), Log: "corrupt\nthe run resumes from checkpoint.old.bin, with 0 of 1 replica finished and 200 of 1000 steps"},
		{Name: "trajectory", Do: enginetest.Spoil(enginetest.CutTo(500), run.TrajectoryName(1)), Log: "is missing frames\nwarning: the run starts from the beginning"},
	})
}

// A checkpoint restores all observables of a replica, including those that appear in
// results only after a longer run.
func TestCheckpointHasAll(t *testing.T) {
	t.Parallel()
	for _, bursts := range []int{4, 12} { // during and after equilibration
		dir := t.TempDir()
		stop(t, mixed(1000, 1), dir, bursts)
		m := newSimulation(settingsOf(t, mixed(1000, 1)), dir, io.Discard)
		defer m.team.Close()
		ended, end := context.WithCancel(t.Context())
		end()
		if err := m.Compute(ended); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		rep := m.Begun()[0]
		kept := max(0, rep.Step()-m.plan.discarded) / m.plan.sampleEvery
		early := rep.Step()/m.plan.sampleEvery - kept
		if rep.track.Frames() != early || rep.profile.Frames() != kept || rep.sizes.frames != kept || rep.temperature.Count() != kept {
			t.Errorf("after %d steps: %d and %d frames, %d sizes, %d temperatures; want %d and %d", rep.Step(),
				rep.track.Frames(), rep.profile.Frames(), rep.sizes.frames, rep.temperature.Count(), early, kept)
		}
		rep.Trajectory.Close()
	}
}

// Intermediate results are marked as incomplete and are consistent from the first frame
// on.
func TestStoppedRunIsNotComplete(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, bursts := range []int{0, 3, 20} {
		stop(t, mixed(2000, 1), dir, bursts)
		s := enginetest.ReadJSON[map[string]any](t, dir, "summary.json")
		if s["complete"] != false || s["results"].(map[string]any)["converged"] != false {
			t.Errorf("after %d more bursts: %v", bursts, s)
		}
	}
	must.Equal(t, "rows of profile.csv", len(enginetest.ReadCSV(t, dir, "profile.csv")), 91)
}
