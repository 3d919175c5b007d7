package cgidp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"molrun/app/engine/store"
	"molrun/app/test/enginetest"
)

// restartable is what the tests below interrupt.
func restartable(cores int) string { return ofSteps(enginetest.Length(4000, 30_000, 30_000), cores) }

func ofSteps(steps, cores int) string {
	return fmt.Sprintf(`{"sequences":["%s","GSGSGSGSGSGSGS"],"names":["Hst5","short"],"steps":%d,"replicas":2,
		"frame_every":700,"sample_every":50,"seed":11,"cores":%d}`, hst5, steps, cores)
}

// TestMain turns the test binary into a simulation, to be killed from outside.
func TestMain(m *testing.M) {
	if dir := os.Getenv("CGIDP_TEST_DIR"); dir != "" {
		s, faults := Parse([]byte(os.Getenv("CGIDP_TEST_SETTINGS")), nil)
		if len(faults) > 0 {
			panic(faults)
		}
		r := newRun(s, dir, os.Stdout)
		r.saveEvery = 20 * time.Millisecond
		if err := r.run(context.Background()); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// runProcess is one run in its own process. With a delay, the process is killed that
// long after its first checkpoint. It reports whether the run came to its end.
func runProcess(t *testing.T, dir, settings string, delay time.Duration) (ended bool, log string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), "CGIDP_TEST_DIR="+dir, "CGIDP_TEST_SETTINGS="+settings)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- c.Wait() }()
	killed := false
	for {
		select {
		case err := <-exited:
			if err != nil && !killed {
				t.Fatalf("%v; log:\n%s", err, out.String())
			}
			return err == nil, out.String()
		case <-time.After(time.Millisecond):
			if _, err := os.Stat(filepath.Join(dir, "Hst5", store.CheckpointFile)); err != nil || delay == 0 || killed {
				continue
			}
			time.Sleep(delay)
			killed = true
			c.Process.Kill() //nolint:errcheck // it may have ended
		}
	}
}

// A run that is killed at any time ends with the same files as one that is not.
func TestResumeAfterKill(t *testing.T) {
	t.Parallel()
	steps := enginetest.Length(4000, 30_000, 300_000)
	began := time.Now()
	whole, _ := simulate(t, ofSteps(steps, 1))
	want := files(t, whole)
	// Delays of this size allow several kills of a run, at all its stages.
	longest := max(100*time.Millisecond, time.Since(began)/5)
	for _, cores := range []int{1, 2} {
		kills, resumed := enginetest.Length(2, 4, 20), 0
		// A kill may come when the checkpoints are gone, just before the end.
		for round := 0; kills > 0 || resumed == 0; round++ {
			if round == 10 {
				t.Fatalf("%d cores: %d kills are left, and %d runs went on from a checkpoint", cores, kills, resumed)
			}
			dir := t.TempDir()
			killed, again := killUntilDone(t, dir, ofSteps(steps, cores), max(kills, 1), longest)
			if diff := cmp.Diff(want, files(t, dir)); diff != "" {
				t.Errorf("%d cores, killed %d times: -whole +killed:\n%s", cores, killed, diff)
			}
			kills -= killed
			resumed += again
		}
	}
}

// killUntilDone runs settings to the end in as many processes as that takes, and
// returns how many of them were killed, and how many went on from a checkpoint.
func killUntilDone(t *testing.T, dir, settings string, most int, longest time.Duration) (killed, resumed int) {
	t.Helper()
	for ended := false; !ended; {
		var delay time.Duration
		if killed < most {
			delay = 1 + rand.N(longest)
		}
		var log string
		ended, log = runProcess(t, dir, settings, delay)
		if strings.Contains(log, "cannot be used") {
			t.Errorf("after %d kills:\n%s", killed, log)
		}
		for line := range strings.Lines(log) {
			if strings.Contains(line, "goes on from") {
				resumed++
				t.Logf("kill %d: %s", killed, strings.TrimSpace(line))
			}
		}
		if !ended {
			killed++
		}
	}
	return killed, resumed
}

// stopAfter is a context that ends after a number of calls of Err, one for each burst
// of steps.
type stopAfter struct {
	context.Context
	bursts int
}

func (s *stopAfter) Err() error {
	if s.bursts--; s.bursts < 0 {
		return context.Canceled
	}
	return s.Context.Err()
}

// stopped runs settings for a number of bursts of steps, one replica after the other,
// and saves.
func stopped(t *testing.T, dir, settings string, bursts int) *run {
	t.Helper()
	r := newRun(settingsOf(t, settings), dir, io.Discard)
	if err := r.resume(); err != nil {
		t.Fatal(err)
	}
	for _, c := range r.chains {
		for _, number := range c.pending() {
			ctx := &stopAfter{t.Context(), bursts}
			err := r.compute(ctx, assignment{c, number})
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			bursts = max(0, ctx.bursts)
			if errors.Is(err, context.Canceled) {
				if err := r.saveStarted(); err != nil {
					t.Fatal(err)
				}
				return r
			}
		}
	}
	return r
}

// resumeLog continues a run to its end and returns the log.
func resumeLog(t *testing.T, dir, settings string) string {
	t.Helper()
	var log bytes.Buffer
	if err := Run(t.Context(), settingsOf(t, settings), dir, &log); err != nil {
		t.Fatal(err)
	}
	return log.String()
}

func TestResume(t *testing.T) {
	t.Parallel()
	whole, _ := simulate(t, restartable(1))
	want := files(t, whole)
	cases := [][]int{{7, 3, 2}, {0}, {90}}
	if enginetest.RaceDetector {
		cases = cases[:1]
	}
	for _, stops := range cases {
		dir := t.TempDir()
		for _, bursts := range stops {
			stopped(t, dir, restartable(1), bursts)
		}
		resumeLog(t, dir, restartable(2))
		if diff := cmp.Diff(want, files(t, dir)); diff != "" {
			t.Errorf("stops %v: -whole +resumed:\n%s", stops, diff)
		}
	}
}

// spoil flips a bit in the middle of a file.
func spoil(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestResumeAfterDamage(t *testing.T) {
	t.Parallel()
	settings := `{"sequences":["` + hst5 + `"],"names":["a"],"steps":3000,"frame_every":300}`
	whole, _ := simulate(t, settings)
	tests := []struct {
		name, want string
		damage     func(t *testing.T, folder string)
	}{
		{"none", "goes on from checkpoint.bin, with 0 of 1 replica finished and 1000 of 3000 steps done", func(*testing.T, string) {}},
		{"last", "checkpoint.bin cannot be used: it is damaged\na goes on from checkpoint.old.bin, with 0 of 1 replica finished and 500 of 3000 steps done", func(t *testing.T, folder string) {
			spoil(t, filepath.Join(folder, store.CheckpointFile))
		}},
		{"between renames", "goes on from checkpoint.old.bin", func(t *testing.T, folder string) {
			if err := os.Remove(filepath.Join(folder, store.CheckpointFile)); err != nil {
				t.Fatal(err)
			}
		}},
		{"both", "it is damaged\nwarning: a starts from the beginning", func(t *testing.T, folder string) {
			spoil(t, filepath.Join(folder, store.CheckpointFile))
			spoil(t, filepath.Join(folder, store.OldCheckpointFile))
		}},
		{"cut short", "it is no checkpoint of this version", func(t *testing.T, folder string) {
			if err := os.Truncate(filepath.Join(folder, store.CheckpointFile), 10); err != nil {
				t.Fatal(err)
			}
		}},
		{"trajectory cut short", "traj.dcd lacks some of its frames", func(t *testing.T, folder string) {
			if err := os.Truncate(filepath.Join(folder, trajectoryFile), 1000); err != nil {
				t.Fatal(err)
			}
		}},
		{"no trajectory", "warning: a starts from the beginning", func(t *testing.T, folder string) {
			if err := os.Remove(filepath.Join(folder, trajectoryFile)); err != nil {
				t.Fatal(err)
			}
		}},
		{"rows beyond the checkpoint", "goes on from checkpoint.bin", func(t *testing.T, folder string) {
			if err := os.WriteFile(filepath.Join(folder, seriesFile), []byte("no rows"), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
	}
	if enginetest.RaceDetector {
		tests = tests[:2]
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			stopped(t, dir, settings, 1)
			stopped(t, dir, settings, 1)
			tt.damage(t, filepath.Join(dir, "a"))
			if log := resumeLog(t, dir, settings); !strings.Contains(log, tt.want) {
				t.Errorf("log lacks %q:\n%s", tt.want, log)
			}
			if diff := cmp.Diff(files(t, whole), files(t, dir)); diff != "" {
				t.Errorf("-whole +resumed:\n%s", diff)
			}
		})
	}
}

// A checkpoint is of no use for other settings, except for another number of cores.
func TestResumeWithOtherSettings(t *testing.T) {
	t.Parallel()
	settings := `{"sequences":["` + hst5 + `"],"steps":2000,"seed":%d,"cores":%d}`
	dir := t.TempDir()
	stopped(t, dir, fmt.Sprintf(settings, 1, 1), 2)
	stopped(t, dir, fmt.Sprintf(settings, 1, 2), 0)
	log := resumeLog(t, dir, fmt.Sprintf(settings, 2, 1))
	if n := strings.Count(log, "it belongs to other settings"); n != 2 {
		t.Errorf("%d checkpoints of other settings, want 2:\n%s", n, log)
	}
	whole, _ := simulate(t, fmt.Sprintf(settings, 2, 1))
	if diff := cmp.Diff(files(t, whole), files(t, dir)); diff != "" {
		t.Errorf("-whole +resumed:\n%s", diff)
	}
}

// A run that was stopped between its last step and its last file only writes files.
func TestResumeFinishedRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings := `{"sequences":["` + hst5 + `"],"steps":1500}`
	r := stopped(t, dir, settings, 100)
	if r.chains[0].final == nil {
		t.Fatal("the sequence is not finished")
	}
	log := resumeLog(t, dir, settings)
	if want := "with 1 of 1 replica finished and 1500 of 1500 steps done"; !strings.Contains(log, want) {
		t.Errorf("log lacks %q:\n%s", want, log)
	}
	whole, _ := simulate(t, settings)
	if diff := cmp.Diff(files(t, whole), files(t, dir)); diff != "" {
		t.Errorf("-whole +resumed:\n%s", diff)
	}
}
