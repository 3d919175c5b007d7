package condensate

import (
	"bytes"
	"context"
	"errors"
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

// TestMain turns the test binary into a simulation, to be killed from outside.
func TestMain(m *testing.M) {
	if dir := os.Getenv("CONDENSATE_TEST_DIR"); dir != "" {
		s, faults := Parse([]byte(os.Getenv("CONDENSATE_TEST_SETTINGS")), nil)
		if len(faults) > 0 {
			panic(faults)
		}
		r := newRun(s, dir, os.Stdout)
		r.saveEvery = time.Duration(enginetest.Length(200, 20, 20)) * time.Millisecond // a save takes longer with the race detector
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
	c.Env = append(os.Environ(), "CONDENSATE_TEST_DIR="+dir, "CONDENSATE_TEST_SETTINGS="+settings)
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
			if _, err := os.Stat(filepath.Join(dir, store.CheckpointFile)); err != nil || delay == 0 || killed {
				continue
			}
			time.Sleep(delay)
			killed = true
			c.Process.Kill() //nolint:errcheck // it may have ended
		}
	}
}

// A run that is killed at any time ends with the same files as one that is not, whatever the
// number of cores.
func TestResumeAfterKill(t *testing.T) {
	t.Parallel()
	steps, kills := enginetest.Length(1000, 3000, 20_000), enginetest.Length(2, 6, 20)
	began := time.Now()
	whole, _ := simulate(t, mixed(steps, 1))
	want := files(t, whole)
	longest := max(100*time.Millisecond, time.Since(began)/5)
	dir := t.TempDir()
	killed, resumed := 0, 0
	for ended := false; !ended; {
		var delay time.Duration
		// A kill may come when the checkpoint is gone, just before the end.
		if killed < kills || resumed == 0 && killed < 10 {
			delay = 1 + rand.N(longest)
		}
		var log string
		ended, log = runProcess(t, dir, mixed(steps, 1+killed%2), delay)
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
	if diff := cmp.Diff(want, files(t, dir)); diff != "" {
		t.Errorf("killed %d times: -whole +killed:\n%.3000s", killed, diff)
	}
	if resumed == 0 {
		t.Error("no checkpoint was used")
	}
}

// stopAfter is a context that ends after a number of calls of Err, one for each burst of
// steps.
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

// stopped runs settings for a number of bursts of steps, and saves: only then, however long it takes.
func stopped(t *testing.T, dir, settings string, bursts int) {
	t.Helper()
	err := runUnsaved(t, &stopAfter{t.Context(), bursts}, settings, dir, io.Discard)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("after %d bursts: %v", bursts, err)
	}
}

// A burst is at most 50 steps here, from one sample to the next.
func TestResume(t *testing.T) {
	t.Parallel()
	const steps = 1000
	whole, _ := simulate(t, mixed(steps, 1))
	want := files(t, whole)
	cases := [][]int{{0, 1, 5, 2}, {3, 14}, {17, 9}} // in the first replica, and in the second
	if enginetest.RaceDetector {
		cases = cases[2:]
	}
	for _, stops := range cases {
		dir := t.TempDir()
		for _, bursts := range stops {
			stopped(t, dir, mixed(steps, 2), bursts)
		}
		var log bytes.Buffer
		if err := Run(t.Context(), settingsOf(t, mixed(steps, 1)), dir, &log); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), "goes on from checkpoint.bin") {
			t.Errorf("stops %v:\n%s", stops, log.String())
		}
		if diff := cmp.Diff(want, files(t, dir)); diff != "" {
			t.Errorf("stops %v: -whole +resumed:\n%.3000s", stops, diff)
		}
	}
}

// What is seen of a replica comes back, also what results show only after a longer run.
func TestCheckpointHasAll(t *testing.T) {
	t.Parallel()
	for _, bursts := range []int{4, 12} { // while chains are drawn together, and later
		dir := t.TempDir()
		stopped(t, dir, mixed(1000, 1), bursts)
		r := newRun(settingsOf(t, mixed(1000, 1)), dir, io.Discard)
		defer r.team.Close()
		if err := r.restore(); err != nil {
			t.Fatal(err)
		}
		rep := r.replicas[0]
		kept := max(0, rep.step()-r.plan.discarded) / r.plan.sampleEvery
		early := rep.step()/r.plan.sampleEvery - kept
		if rep.track.Frames() != early || rep.profile.Frames() != kept || rep.sizes.frames != kept || rep.temperature.Count() != kept {
			t.Errorf("after %d steps: %d and %d frames, %d sizes, %d temperatures; want %d and %d", rep.step(),
				rep.track.Frames(), rep.profile.Frames(), rep.sizes.frames, rep.temperature.Count(), early, kept)
		}
		rep.trajectory.Close()
	}
}

// Results so far are said to be so, and make sense from the first frame on.
func TestStoppedRunIsNotComplete(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, bursts := range []int{0, 3, 20} {
		stopped(t, dir, mixed(2000, 1), bursts)
		s := readJSON(t, dir, "summary.json")
		if s["complete"] != false || s["results"].(map[string]any)["converged"] != false {
			t.Errorf("after %d more bursts: %v", bursts, s)
		}
	}
	if n := len(readCSV(t, dir, "profile.csv")); n != 91 {
		t.Errorf("%d rows of profile.csv", n)
	}
}

func TestResumeAfterDamage(t *testing.T) {
	t.Parallel()
	settings := `{"components":[{"name":"a","sequence":"GFYRGSYD","copies":20}],"box_nm":[9,9,40],"steps":1000,"sample_every":50,"frame_every":100,"seed":%d}`
	first := strings.Replace(settings, "%d", "1", 1)
	whole, _ := simulate(t, first)
	spoil := func(name string, change func(content []byte) []byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, name)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, change(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	flip := func(content []byte) []byte {
		content[len(content)/2] ^= 1
		return content
	}
	tests := []struct {
		name, want string
		damage     func(t *testing.T, dir string)
	}{
		{"none", "goes on from checkpoint.bin, with 450 of 1000 steps of replica 1 done", func(*testing.T, string) {}},
		{"last", "it is damaged\ngoes on from checkpoint.old.bin, with 200 of 1000 steps", spoil(store.CheckpointFile, flip)},
		{"trajectory", "lacks some of its frames\nwarning: the run starts from the beginning", spoil(trajectoryFile, func(b []byte) []byte { return b[:500] })},
		{"cut short", "it is no checkpoint of this version", spoil(store.CheckpointFile, func(b []byte) []byte { return b[:10] })},
	}
	twice := t.TempDir()
	stopped(t, twice, first, 5)
	stopped(t, twice, first, 5)
	for _, tt := range tests {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(twice)); err != nil {
			t.Fatal(err)
		}
		tt.damage(t, dir)
		var log bytes.Buffer
		if err := Run(t.Context(), settingsOf(t, first), dir, &log); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), tt.want) {
			t.Errorf("%s: log lacks %q:\n%s", tt.name, tt.want, log.String())
		}
		if diff := cmp.Diff(files(t, whole), files(t, dir)); diff != "" {
			t.Errorf("%s: -whole +resumed:\n%.2000s", tt.name, diff)
		}
	}
	// A checkpoint is of no use for other settings.
	dir := t.TempDir()
	stopped(t, dir, first, 5)
	var log bytes.Buffer
	if err := Run(t.Context(), settingsOf(t, strings.Replace(settings, "%d", "2", 1)), dir, &log); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "it belongs to other settings") {
		t.Errorf("log:\n%s", log.String())
	}
}
