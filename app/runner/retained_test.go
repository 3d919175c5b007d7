package runner

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/task"
)

// oneDir has the directories of all jobs in one directory.
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
	must(t, k.sweep(t.Context())) // there are no notes yet
	const old, young = app.JobID("01KA000000000000000000000A"), app.JobID("01KA000000000000000000000B")
	for _, id := range []app.JobID{old, young} {
		must(t, os.MkdirAll(filepath.Join(dir, string(id), "2", task.WorkDir), 0o700))
	}
	must(t, k.note(old, 2))
	now = now.Add(time.Hour)
	must(t, k.note(young, 2))
	must(t, os.WriteFile(filepath.Join(k.dir, "notes"), []byte("mine"), 0o600))
	must(t, os.WriteFile(filepath.Join(k.dir, string(young)+".1"), nil, 0o600)) // cut short by a crash
	must(t, k.sweep(t.Context()))
	if isDir(filepath.Join(dir, string(old), "2", task.WorkDir)) {
		t.Error("the old work directory is still there")
	}
	if !isDir(filepath.Join(dir, string(young), "2", task.WorkDir)) {
		t.Error("the recent work directory was removed")
	}
	now = now.Add(time.Hour)
	must(t, k.sweep(t.Context()))
	notes, err := os.ReadDir(k.dir)
	must(t, err)
	if len(notes) != 1 || notes[0].Name() != "notes" {
		t.Errorf("%v are left, want only the file that is not a note", notes)
	}
}
