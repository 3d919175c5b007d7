package enginetest

import (
	"bytes"
	"context"
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

	"molrun/app/test/must"
)

// Engine is an engine whose runs can be interrupted and resumed. Its methods are tests
// that every such engine must pass.
type Engine struct {
	// Run runs a simulation and saves checkpoints at the given interval.
	Run func(ctx context.Context, settings, dir string, log io.Writer, saveEvery time.Duration) error
	// Stop starts or resumes the simulation, computes the given number of bursts of
	// steps, and saves a checkpoint only at the end.
	Stop func(t testing.TB, settings, dir string, bursts int)
	// Folder is the directory of the first checkpoint, relative to the run's directory.
	Folder string
}

// File names of checkpoints.
const (
	CheckpointFile    = "checkpoint.bin"
	OldCheckpointFile = "checkpoint.old.bin"
)

const (
	dirVariable      = "ENGINE_TEST_DIR"
	settingsVariable = "ENGINE_TEST_SETTINGS"
	rarely           = 24 * time.Hour
)

// Main runs a simulation instead of the tests if the test binary was started by
// [Engine.Process]. The caller can then kill that process.
func (e Engine) Main(m *testing.M) {
	dir := os.Getenv(dirVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	saveEvery := time.Duration(Length(200, 20, 20)) * time.Millisecond // saving takes longer under the race detector
	if err := e.Run(context.Background(), os.Getenv(settingsVariable), dir, os.Stdout, saveEvery); err != nil {
		panic(err)
	}
}

// Process returns the command of a run in its own process.
func (e Engine) Process(ctx context.Context, settings, dir string) *exec.Cmd {
	c := exec.CommandContext(ctx, os.Args[0])
	c.Env = append(os.Environ(), dirVariable+"="+dir, settingsVariable+"="+settings)
	return c
}

// Simulate runs a simulation in a new directory, and returns the directory and the log.
func (e Engine) Simulate(t testing.TB, settings string) (dir, log string) {
	t.Helper()
	dir = t.TempDir()
	return dir, e.Finish(t, settings, dir)
}

// Finish runs a simulation to the end, from its checkpoint if there is one, and returns
// the log.
func (e Engine) Finish(t testing.TB, settings, dir string) (log string) {
	t.Helper()
	var b bytes.Buffer
	if err := e.Run(t.Context(), settings, dir, &b, rarely); err != nil {
		t.Fatalf("%v; log:\n%s", err, b.String())
	}
	return b.String()
}

// StopAfter is a context that is canceled after the given number of calls of Err. Engines
// call Err once for each burst of steps.
type StopAfter struct {
	context.Context
	Bursts int
}

// Err implements context.Context.
func (s *StopAfter) Err() error {
	if s.Bursts--; s.Bursts < 0 {
		return context.Canceled
	}
	return s.Context.Err()
}

// ResumesAfterKills kills a run at random times, using one or two cores in turn. The run
// must produce the same files as one that was never killed.
func (e Engine) ResumesAfterKills(t *testing.T, settings func(cores int) string, kills int) {
	t.Helper()
	began := time.Now()
	whole, _ := e.Simulate(t, settings(1))
	longest := max(100*time.Millisecond, time.Since(began)/5) // short enough to kill a run several times, at all stages
	dir := t.TempDir()
	killed, resumed := 0, 0
	for ended := false; !ended; {
		// The last kill might come after the checkpoint has been deleted, just before the
		// end.
		kill := killed < kills || resumed == 0 && killed < kills+10
		var delay time.Duration // zero at first, so that even a fast run has not yet ended
		if killed > 0 {
			delay = rand.N(longest)
		}
		var log string
		ended, log = e.untilKilled(t, settings(1+killed%2), dir, kill, delay)
		if strings.Contains(log, "cannot use") {
			t.Errorf("after %d kills:\n%s", killed, log)
		}
		resumed += strings.Count(log, "resumes from")
		if !ended {
			killed++
		}
	}
	if diff := cmp.Diff(Files(t, whole), Files(t, dir)); diff != "" {
		t.Errorf("killed %d times: -whole +killed:\n%.3000s", killed, diff)
	}
	if resumed == 0 {
		t.Error("no checkpoint was used")
	}
}

// untilKilled starts a run in its own process, and kills it some time after its first
// checkpoint if kill is set. It reports whether the run finished.
func (e Engine) untilKilled(t *testing.T, settings, dir string, kill bool, delay time.Duration) (ended bool, log string) {
	t.Helper()
	c := e.Process(t.Context(), settings, dir)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	must.OK(t, c.Start())
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
			if _, err := os.Stat(filepath.Join(dir, e.Folder, CheckpointFile)); err != nil || !kill || killed {
				continue
			}
			time.Sleep(delay)
			killed = true
			c.Process.Kill() //nolint:errcheck // it may have ended
		}
	}
}

// ResumesAfterStops repeatedly stops runs after the given numbers of bursts of steps.
// Each run must produce the same files as one that was never stopped.
func (e Engine) ResumesAfterStops(t *testing.T, settings func(cores int) string, cases ...[]int) {
	t.Helper()
	whole, _ := e.Simulate(t, settings(1))
	for _, stops := range cases {
		dir := t.TempDir()
		for _, bursts := range stops {
			e.Stop(t, settings(2), dir, bursts)
		}
		if log := e.Finish(t, settings(1), dir); !strings.Contains(log, "resumes from checkpoint.bin") {
			t.Errorf("stops %v:\n%s", stops, log)
		}
		if diff := cmp.Diff(Files(t, whole), Files(t, dir)); diff != "" {
			t.Errorf("stops %v: -whole +resumed:\n%.3000s", stops, diff)
		}
	}
}

// Damage is a way to damage the directory of a run that was stopped twice.
type Damage struct {
	Name string
	Do   func(t *testing.T, folder string)
	Log  string // must appear in the next run's log
}

// Undamaged changes nothing.
func Undamaged(*testing.T, string) {}

// Spoil returns a function that changes the content of files.
func Spoil(change func([]byte) []byte, names ...string) func(t *testing.T, folder string) {
	return func(t *testing.T, folder string) {
		for _, name := range names {
			path := filepath.Join(folder, name)
			must.OK(t, os.WriteFile(path, change(Read(t, path)), 0o600))
		}
	}
}

// Flip flips a bit in the middle of the content.
func Flip(content []byte) []byte {
	content[len(content)/2] ^= 1
	return content
}

// CutTo returns a function that truncates the content to n bytes.
func CutTo(n int) func([]byte) []byte { return func(content []byte) []byte { return content[:n] } }

// Removed returns a function that removes a file.
func Removed(name string) func(t *testing.T, folder string) {
	return func(t *testing.T, folder string) { must.OK(t, os.Remove(filepath.Join(folder, name))) }
}

// ResumesAfterDamage resumes a run that was stopped twice, each time after some bursts of
// steps. Whatever the damage, the run must produce the same files as one that was never
// stopped. settings must contain a verb for the seed, because checkpoints of other
// settings must not be used.
func (e Engine) ResumesAfterDamage(t *testing.T, settings string, bursts int, tests []Damage) {
	t.Helper()
	first, second := fmt.Sprintf(settings, 1), fmt.Sprintf(settings, 2)
	twice := t.TempDir()
	e.Stop(t, first, twice, bursts)
	e.Stop(t, first, twice, bursts)
	check := func(t *testing.T, settings, whole, wantLog string, damage func(t *testing.T, folder string)) {
		dir := t.TempDir()
		must.OK(t, os.CopyFS(dir, os.DirFS(twice)))
		damage(t, filepath.Join(dir, e.Folder))
		if log := e.Finish(t, settings, dir); !strings.Contains(log, wantLog) {
			t.Errorf("log does not contain %q:\n%s", wantLog, log)
		}
		if diff := cmp.Diff(Files(t, whole), Files(t, dir)); diff != "" {
			t.Errorf("-whole +resumed:\n%.3000s", diff)
		}
	}
	whole, _ := e.Simulate(t, first)
	for _, tt := range append(tests,
		Damage{Name: "both", Do: Spoil(Flip, CheckpointFile, OldCheckpointFile), Log: "starts from the beginning"},
		Damage{Name: "between renames", Do: Removed(CheckpointFile), Log: "resumes from checkpoint.old.bin"},
		Damage{Name: "cut short", Do: Spoil(CutTo(10), CheckpointFile), Log: "not a checkpoint of this version"},
	) {
		t.Run(tt.Name, func(t *testing.T) { check(t, first, whole, tt.Log, tt.Do) })
	}
	t.Run("other settings", func(t *testing.T) {
		whole, _ := e.Simulate(t, second)
		check(t, second, whole, "it was written with different settings", Undamaged)
	})
}
