package boltfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"molrun/app/base/fault"
)

// A process may wait for the lock of a file that compaction replaces.
func TestReplacedFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	open := func() *os.File {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	old := open()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	current := open()
	if err := expectCurrent(old, path); !errors.Is(err, fault.Unavailable) {
		t.Errorf("of the old file: error %v, want UNAVAILABLE", err)
	}
	if err := expectCurrent(current, path); err != nil {
		t.Errorf("of the current file: %v", err)
	}
}
