package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/executor/local"
	"molrun/app/server/config"
	"molrun/app/test/must"
)

// TestSharedFolderIsSafeOrRefused checks how startup treats shared folders: unsafe ones
// prevent it, absent ones do not.
func TestSharedFolderIsSafeOrRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"data", "good", "open", "data/within"} {
		must.OK(t, os.Mkdir(path(name), 0o700))
	}
	must.OK(t, os.Chmod(path("open"), 0o720))
	must.OK(t, os.WriteFile(path("file"), nil, 0o600))
	must.OK(t, os.Symlink("data/within", path("link")))
	for _, tt := range []struct {
		name string
		code fault.Code
		says string
	}{
		{"good", "", ""},
		{"absent", fault.Unavailable, "mount or create it"},
		{"file", fault.Invalid, "is not a folder"},
		{"open", fault.Invalid, "run chmod 700"},
		{"link", fault.Invalid, "overlap"},
		{".", fault.Invalid, "overlap"},
		{"data", fault.Invalid, "overlap"},
	} {
		err := CheckSharedDir(path(tt.name), path("data"))
		if tt.code == "" && err == nil {
			continue
		}
		if tt.code == "" || !errors.Is(err, tt.code) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %s with %q", tt.name, err, tt.code, tt.says)
		}
	}
	must.OK(t, CheckSharedDir(path("good"), path("data-to-come")))
}

func TestBoundsFitWhatTheSystemAllows(t *testing.T) {
	t.Parallel()
	defaults := config.Default().Limits
	for _, files := range []int{32, 48, 64, 256, 1024, 4096, 65536, 1 << 20} {
		l := FitOpenFiles(defaults, files)
		used := 2*l.Connections + l.Streams*filesPerTransfer
		if l.Connections < 2 || l.Streams < 1 || l.StreamsPerKey > l.Streams || files >= 48 && used+minReserved > files {
			t.Errorf("of %d files: %d connections and %d transfers", files, l.Connections, l.Streams)
		}
		if whole := fmt.Sprint(l) == fmt.Sprint(defaults); whole != (files >= 65536) {
			t.Errorf("of %d files: %+v", files, l)
		}
	}
}

func TestMachinesAreAsConfiguredElseAsDetected(t *testing.T) {
	t.Parallel()
	c := config.Default()
	detected, err := Inspect(c)
	must.OK(t, err)
	if cpus := detected.Machines()[placement.Local].CPUs; cpus < 1 || len(detected.Machines()) != 1 {
		t.Errorf("detected: %+v", detected.Machines())
	}
	c.Runner.CPUs, c.Slurm.SharedDir = 3, "/shared"
	given, err := Inspect(c)
	must.OK(t, err)
	if _, cluster := given.Machines()[placement.Slurm]; !cluster || given.Machines()[placement.Local].CPUs != 3 {
		t.Errorf("given: %+v", given.Machines())
	}
}

// TestDiskOfADataDirectoryThatIsNotThereYet expects the size of the parent directory's
// disk.
func TestDiskOfADataDirectoryThatIsNotThereYet(t *testing.T) {
	dir := t.TempDir()
	there, err := IsolationOptions(config.Config{Data: dir})
	must.OK(t, err)
	absent, err := IsolationOptions(config.Config{Data: filepath.Join(dir, "a", "b")})
	if err != nil || absent.FileBytes != there.FileBytes || there.FileBytes == 0 {
		t.Errorf("%d bytes and %d, %v", there.FileBytes, absent.FileBytes, err)
	}
}

func TestJobsKeepTheReserveOfTheDisk(t *testing.T) {
	c := config.Default()
	c.Data, c.Disk.Reserve = t.TempDir(), 1<<20
	options, err := IsolationOptions(c)
	must.OK(t, err)
	isolation, err := local.ProbeSandbox(t.Context(), options)
	must.OK(t, err)
	must.Equal(t, "bytes that tasks leave free", isolation.Reserve, 1<<20)
}
