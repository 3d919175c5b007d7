package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/task"
	"molrun/app/test/must"
)

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
		t.Error("it says that it removed one although none is retained")
	}
	must.OK(t, r.note(id, 1, false))
	r.jobs = claimsUnknown{}
	if remove() || !isDir(work) {
		t.Error("it removed one although it can't be told which are in use")
	}
	r.jobs = nothingClaimed{}
	if !remove() || isDir(work) {
		t.Error("it removed none")
	}
	if remove() {
		t.Error("it says that it removed another")
	}
}
