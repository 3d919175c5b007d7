package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/task"
	"molrun/app/test/must"
)

// oneDir keeps the directories of all jobs in one directory.
type oneDir struct {
	Dirs
	path string
}

func (d oneDir) JobDir(id app.JobID) string { return filepath.Join(d.path, string(id)) }

// nothingClaimed is a service without claimed jobs.
type nothingClaimed struct{ Jobs }

func (nothingClaimed) Claims(context.Context) ([]app.Claimed, error) { return nil, nil }

func TestSweepSparesYoungAndForeignFiles(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	k := retained{dir: filepath.Join(dir, "retained"), keep: time.Hour, now: func() time.Time { return now }, jobs: nothingClaimed{}, dirs: oneDir{path: dir}}
	must.OK(t, k.cleanUp(t.Context())) // there are no notes yet
	const old, young = app.JobID("01KA000000000000000000000A"), app.JobID("01KA000000000000000000000B")
	for _, id := range []app.JobID{old, young} {
		must.OK(t, os.MkdirAll(filepath.Join(dir, string(id), "2", task.WorkDir), 0o700))
	}
	must.OK(t, k.recordRetained(old, 2, false))
	now = now.Add(time.Hour)
	must.OK(t, k.recordRetained(young, 2, true))
	must.OK(t, os.WriteFile(filepath.Join(k.dir, "notes"), []byte("mine"), 0o600))
	must.OK(t, os.WriteFile(filepath.Join(k.dir, string(young)+".1"), nil, 0o600)) // truncated by a crash
	must.OK(t, k.cleanUp(t.Context()))
	if isDir(filepath.Join(dir, string(old), "2", task.WorkDir)) {
		t.Error("the old work directory is still there")
	}
	if !isDir(filepath.Join(dir, string(young), "2", task.WorkDir)) {
		t.Error("the recent work directory was removed")
	}
	now = now.Add(time.Hour)
	must.OK(t, k.cleanUp(t.Context()))
	notes, err := os.ReadDir(k.dir)
	must.OK(t, err)
	if len(notes) != 1 || notes[0].Name() != "notes" {
		t.Errorf("%v are left, want only the file that is not a note", notes)
	}
}

// While the disk is short of space, retained directories are removed one by one: first
// those of jobs that failed for that reason, then the oldest.
func TestRetainedWorkMakesRoom(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		disk := &gauge{}
		w.options.DiskShortage = disk.shortage
		w.play(func(name string, _ int) script {
			s := script{runs: time.Minute, cause: app.CauseExit}
			if name == "said so" {
				s.log = "write: No space left on device\n"
			}
			return s
		})
		w.start()
		var order []app.JobID
		for _, name := range []string{"old", "new", "said so"} {
			order = append(order, w.submit(ann, name, `{}`))
			w.finished(name)
			time.Sleep(time.Hour)
		}
		disk.set("waiting for free disk space")
		left := func() (ids []app.JobID) {
			for _, id := range order {
				if isDir(w.path(id, "1", task.WorkDir)) {
					ids = append(ids, id)
				}
			}
			return ids
		}
		for _, want := range [][]app.JobID{order[:2], order[1:2], nil} {
			for end := time.Now().Add(time.Hour); len(left()) > len(want) && time.Now().Before(end); {
				time.Sleep(freeSpacePause / 10)
			}
			if got := left(); !slices.Equal(got, want) {
				t.Errorf("%v are left, want %v of %v", got, want, order)
			}
		}
	})
}

// If no note can be written, the work directory is removed: without a note, no cleanup
// would ever find it.
func TestWorkThatIsNotNotedIsRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		must.OK(t, os.WriteFile(w.options.RetainedDir, nil, 0o600)) // not a directory, so no note can be written
		w.play(func(string, int) script { return script{runs: time.Minute, cause: app.CauseExit} })
		w.start()
		id := w.submit(ann, "a", `{}`)
		w.finished("a")
		time.Sleep(time.Minute)
		if isDir(w.path(id, "1", task.WorkDir)) {
			t.Error("the work directory is still there")
		}
	})
}

// claimsUnknown is a service whose claimed jobs can't be read.
type claimsUnknown struct{ Jobs }

func (claimsUnknown) Claims(context.Context) ([]app.Claimed, error) {
	return nil, errors.New("the store is broken")
}

func TestRemovingOneDirectoryTellsWhetherThereWasOne(t *testing.T) {
	dir := t.TempDir()
	r := retained{dir: filepath.Join(dir, "retained"), keep: time.Hour, now: time.Now, jobs: nothingClaimed{}, dirs: oneDir{path: dir}}
	const id = app.JobID("01KA000000000000000000000A")
	work := filepath.Join(dir, string(id), "1", task.WorkDir)
	must.OK(t, os.MkdirAll(work, 0o700))
	remove := func() bool { return r.removeFirst(t.Context(), zerolog.Nop(), "the disk is full") }
	if remove() {
		t.Error("reports a removal although none is retained")
	}
	must.OK(t, r.recordRetained(id, 1, false))
	r.jobs = claimsUnknown{}
	if remove() || !isDir(work) {
		t.Error("removed a directory although the claims can't be read")
	}
	r.jobs = nothingClaimed{}
	if !remove() || isDir(work) {
		t.Error("it removed none")
	}
	if remove() {
		t.Error("it says that it removed another")
	}
}
