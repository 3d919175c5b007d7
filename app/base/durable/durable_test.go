package durable

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"molrun/app/test/must"
)

func TestMkdirAll(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "a", "b", "c")
	for range 2 { // the second call must succeed, too
		must.OK(t, MkdirAll(dir, 0o700))
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, err %v; want 0700", info.Mode(), err)
	}
	t.Chdir(top)
	if err := MkdirAll("relative/dir", 0o700); err != nil {
		t.Error(err)
	}
	must.OK(t, os.WriteFile("file", nil, 0o600))
	for _, dir := range []string{"file", "file/below"} {
		if err := MkdirAll(dir, 0o700); err == nil {
			t.Errorf("created the directory %s in place of a file", dir)
		}
	}
}

func openRoot(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, root.Close()) })
	return root
}

func TestReplace(t *testing.T) {
	root := openRoot(t)
	must.OK(t, errors.Join(root.Mkdir("dir", 0o700), root.Mkdir("dir/taken", 0o700)))
	for _, content := range []string{"first", "", "second"} {
		must.OK(t, Replace(root, "dir/file", []byte(content)))
		got, err := root.ReadFile("dir/file")
		if err != nil || string(got) != content {
			t.Errorf("content %q, err %v; want %q", got, err, content)
		}
	}
	if info, err := root.Stat("dir/file"); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, err %v; want 0600", info.Mode(), err)
	}
	if err := Replace(root, "dir/taken", []byte("x")); err == nil {
		t.Error("replaced a directory")
	}
	if err := Replace(root, "missing/file", []byte("x")); err == nil {
		t.Error("wrote into a missing directory")
	}
	entries, err := os.ReadDir(root.Name() + "/dir")
	if err != nil || len(entries) != 2 {
		t.Errorf("entries %v, err %v; want file and taken only", entries, err)
	}
}

// TestReplaceKeepsTheOldContentWhereTheNewDoesNotFit has space for only part of the new
// content.
func TestReplaceKeepsTheOldContentWhereTheNewDoesNotFit(t *testing.T) {
	root := openRoot(t)
	must.OK(t, Replace(root, "file", []byte("old")))
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	must.OK(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	must.OK(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 10, Max: limit.Max}))
	err := Replace(root, "file", []byte("longer than ten bytes"))
	must.OK(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	content, _ := root.ReadFile("file")
	entries, _ := os.ReadDir(root.Name())
	if !errors.Is(err, syscall.EFBIG) || string(content) != "old" || len(entries) != 1 {
		t.Errorf("error %v, content %q, entries %v; want only the old file", err, content, entries)
	}
}

func TestDiskSyncsForAllWhoWait(t *testing.T) {
	root := openRoot(t)
	d, err := OpenDisk(root.Name())
	must.OK(t, err)
	defer d.Close()
	for _, content := range []string{"first", "second"} {
		must.OK(t, Put(root, "file", []byte(content)))
		if got, err := root.ReadFile("file"); err != nil || string(got) != content {
			t.Errorf("content %q, err %v; want %q", got, err, content)
		}
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if err := d.Sync(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if entries, err := os.ReadDir(root.Name()); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v; want the one file", entries, err)
	}
}

func TestDiskThatIsClosedSaysSo(t *testing.T) {
	d, err := OpenDisk(t.TempDir())
	must.OK(t, err)
	if err := errors.Join(d.Close(), d.Sync()); err == nil {
		t.Error("a closed disk was synced")
	}
	var opened error
	if d.dir, opened = os.Open(t.TempDir()); opened != nil {
		t.Fatal(opened)
	}
	defer d.Close()
	if err := d.Sync(); err == nil { // the failure could concern later callers
		t.Error("a failed disk was trusted again")
	}
	if _, err := OpenDisk("/no/such/dir"); err == nil {
		t.Error("opened the disk of a missing directory")
	}
}
