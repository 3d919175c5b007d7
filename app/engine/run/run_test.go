package run

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"molrun/app/engine/md"
	"molrun/app/engine/trajectory"
	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

// counter is a replica that only counts steps.
type counter struct {
	Base
	step   int64
	broken int64 // step at which it fails
}

func (c *counter) Start() error          { return c.Create("") }
func (c *counter) Resume() error         { return nil }
func (c *counter) Step() int64           { return c.step }
func (c *counter) Status() string        { return "counting" }
func (c *counter) Archive(a *md.Archive) { a.Integer(&c.step) }

func (c *counter) Burst() error {
	if c.step++; c.step == c.broken || c.step > 10 {
		return errors.New("it broke")
	}
	return nil
}

// counters is a part with counter replicas.
type counters struct {
	Part[*counter]
	broken   [2]int64 // by replica
	complete bool
	writing  func(begun []*counter) // called by Write, if not nil
}

func (c *counters) New(number int) *counter {
	return &counter{
		Base:   Base{Number: number, Folder: c.Folder, Trajectory: trajectory.NewDCD(1, 1, md.Vec{})},
		broken: c.broken[number-1],
	}
}
func (c *counters) Gather([]*counter)   {}
func (c *counters) Archive(*md.Archive) {}
func (c *counters) Reset()              {}

func (c *counters) Write(begun []*counter, complete bool) error {
	c.complete = complete
	if c.writing != nil {
		c.writing(begun)
	}
	return nil
}

// counting returns a run of parts with two replicas of ten steps each.
func counting(dir string, log io.Writer, parts ...string) (*Run[*counter], []*counters) {
	r := &Run[*counter]{Workers: 1, Log: log, SaveEvery: time.Hour}
	var all []*counters
	for _, name := range parts {
		c := &counters{Part: Part[*counter]{Name: name, Folder: filepath.Join(dir, name), Count: 2, Steps: 10, Cost: 1}}
		c.Hash = SettingsHash(name)
		c.System = c
		all, r.Parts = append(all, c), append(r.Parts, &c.Part)
	}
	return r, all
}

func TestProgress(t *testing.T) {
	for prefix, parts := range map[string][]string{"": {""}, "b ": {"b", "a"}} {
		var log bytes.Buffer
		r, _ := counting(t.TempDir(), &log, parts...)
		_, c, err := r.nextReplica()
		must.OK(t, err)
		defer c.Trajectory.Close()
		r.report()
		for range 5 {
			must.OK(t, burst(c))
		}
		r.started = time.Now().Add(-time.Minute)
		r.report()
		done := map[int]string{1: `0\.25`, 2: `0\.125`}[len(parts)]
		want := `^molrun:progress 0 ` + prefix + `step 0/10 0\.0% replica 1/2 counting
molrun:progress ` + done + ` ` + prefix + `step 5/10 50\.0% replica 1/2 counting ETA \d+m
$`
		if !regexp.MustCompile(want).Match(log.Bytes()) {
			t.Errorf("progress:\n%s\nwant\n%s", log.String(), want)
		}
	}
}

// The first error ends the run, and the state after it is not saved. Cancellation of the
// context is not such an error.
func TestRunEndsWithTheFirstError(t *testing.T) {
	saved := func(c *counters) bool {
		_, err := os.Stat(filepath.Join(c.Folder, checkpointFile))
		return err == nil
	}
	for name, want := range map[string]string{"": "replica 2: it broke", "a": "sequence a, replica 2: it broke"} {
		var log bytes.Buffer
		r, all := counting(t.TempDir(), &log, name)
		all[0].broken[1] = 3
		if err := r.Compute(t.Context()); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		if saved(all[0]) {
			t.Error("a replica that failed was saved")
		}
	}
	dir := t.TempDir()
	goesOn := []string{
		"",
		"a resumes from checkpoint.bin, with 0 of 2 replicas finished and 7 of 20 steps done\n",
		"a resumes from checkpoint.bin, with 1 of 2 replicas finished and 13 of 20 steps done\n",
	}
	for stops, want := range goesOn {
		var log bytes.Buffer
		r, all := counting(dir, &log, "a", "b")
		err := r.Compute(&enginetest.StopAfter{Context: t.Context(), Bursts: 7 - stops})
		if !errors.Is(err, context.Canceled) || !saved(all[0]) || saved(all[1]) || all[0].complete {
			t.Errorf("stop %d: %v; saved %v and %v", stops, err, saved(all[0]), saved(all[1]))
		}
		must.Equal(t, "log", log.String(), want)
	}
	r, all := counting(dir, io.Discard, "a", "b")
	must.OK(t, r.Compute(t.Context()))
	if !saved(all[0]) || !saved(all[1]) || !all[0].complete || !all[1].complete {
		t.Error("a complete run can't go on before it ends")
	}
	must.OK(t, r.End())
	if saved(all[0]) || saved(all[1]) {
		t.Error("checkpoints are left")
	}
}

// Replicas share the state of their system, so no replica starts while that state is
// being written.
func TestReplicasBeginBetweenSaves(t *testing.T) {
	r, all := counting(t.TempDir(), io.Discard, "")
	c := all[0]
	_, first, err := r.nextReplica()
	must.OK(t, err)
	defer first.Trajectory.Close()
	var next sync.WaitGroup
	c.writing = func(begun []*counter) {
		next.Go(func() {
			if _, second, err := r.nextReplica(); err != nil {
				t.Error(err)
			} else {
				second.Trajectory.Close()
			}
		})
		for range 10 {
			time.Sleep(time.Millisecond) // enough time for the replica to start
			must.Equal(t, "replicas that have begun", len(c.Begun()), len(begun))
		}
	}
	must.OK(t, c.saveSoFar())
	next.Wait()
	must.Equal(t, "replicas that have begun", len(c.Begun()), 2)
}
