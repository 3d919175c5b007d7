package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		err := sharedFolder(path(tt.name), path("data"))
		if tt.code == "" && err == nil {
			continue
		}
		if tt.code == "" || !errors.Is(err, tt.code) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %s with %q", tt.name, err, tt.code, tt.says)
		}
	}
}

func TestServiceDoesNotStartOnAnUnsafeSharedFolder(t *testing.T) {
	t.Parallel()
	shared := t.TempDir()
	must(t, os.Chmod(shared, 0o777))
	s := unstarted(t, "[slurm]\nshared_dir = \""+shared+"\"\n")
	if _, errs, code := s.run("serve", "--listen", "127.0.0.1:0"); code != exitInvalid || !strings.Contains(errs, "others may write to "+shared) {
		t.Errorf("it ended with %d: %s", code, errs)
	}
}
