package boltfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"molrun/app/base/fault"
	"molrun/app/test/must"
)

// A process can be waiting for the lock of a file that compaction replaces.
func TestReplacedFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	create := func() *os.File {
		f, err := os.Create(path)
		must.OK(t, err)
		t.Cleanup(func() { f.Close() })
		return f
	}
	old := create()
	must.OK(t, os.Remove(path))
	must.OK(t, expectCurrent(create(), path))
	if err := expectCurrent(old, path); !errors.Is(err, fault.Unavailable) {
		t.Errorf("of the old file: error %v, want UNAVAILABLE", err)
	}
}
