package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/config"
	"molrun/app/fault"
)

// TestSharedFolderIsSafeOrRefused has for each folder what a start makes of it:
// unsafe ones keep the service from starting, absent ones don't.
func TestSharedFolderIsSafeOrRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"data", "good", "open", "data/within"} {
		must(t, os.Mkdir(path(name), 0o700))
	}
	must(t, os.Chmod(path("open"), 0o720))
	must(t, os.WriteFile(path("file"), nil, 0o600))
	must(t, os.Symlink("data/within", path("link")))
	for _, tt := range []struct {
		name string
		code fault.Code
		says string
	}{
		{"good", "", ""},
		{"absent", fault.Unavailable, "mount it or make it"},
		{"file", fault.Invalid, "is no folder"},
		{"open", fault.Invalid, "run chmod 700"},
		{"link", fault.Invalid, "lie in one another"},
		{".", fault.Invalid, "lie in one another"},
		{"data", fault.Invalid, "lie in one another"},
	} {
		err := CheckSharedDir(path(tt.name), path("data"))
		if tt.code == "" && err == nil {
			continue
		}
		if tt.code == "" || !errors.Is(err, tt.code) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %s with %q", tt.name, err, tt.code, tt.says)
		}
	}
}

// The folder may be there before the data directory is made.
func TestSharedFolderMayComeBeforeTheDataDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shared := filepath.Join(dir, "shared")
	must(t, os.Mkdir(shared, 0o700))
	must(t, CheckSharedDir(shared, filepath.Join(dir, "data")))
}

func TestBoundsFitWhatTheSystemAllows(t *testing.T) {
	t.Parallel()
	defaults := config.Default().Limits
	for _, files := range []int{32, 48, 64, 256, 1024, 4096, 65536, 1 << 20} {
		l := FitOpenFiles(defaults, files)
		used := l.Connections + l.Streams*filesPerTransfer
		if l.Connections < 2 || l.Streams < 1 || l.StreamsPerKey > l.Streams || files >= 48 && used+minReserved > files {
			t.Errorf("of %d files: %d connections and %d transfers", files, l.Connections, l.Streams)
		}
		if whole := fmt.Sprint(l) == fmt.Sprint(defaults); whole != (files >= 65536) {
			t.Errorf("of %d files: %+v", files, l)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
