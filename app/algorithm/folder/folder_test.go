package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"molrun/app/test/must"
)

const main = "format = 1\n"

// written creates a folder with files. Files that end in .sh are executable.
func written(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
		mode := os.FileMode(0o600)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o700
		}
		must.OK(t, os.WriteFile(path, []byte(text), mode))
	}
	return dir
}

// readDir reads the folder at a path, without following links that lead out of it.
func readDir(t *testing.T, dir string) (*Folder, []string) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must.OK(t, err)
	t.Cleanup(func() { root.Close() })
	f, wrong, err := ReadFolder(root.FS())
	must.OK(t, err)
	return f, wrong
}

func listed(t *testing.T, dir string) *Folder {
	t.Helper()
	f, wrong := readDir(t, dir)
	if wrong != nil {
		t.Fatal(wrong)
	}
	f.Append([]byte(main))
	return f
}

func TestFolderIsListedWithoutWhatEditorsAndPythonLeave(t *testing.T) {
	t.Parallel()
	f := listed(t, written(t, map[string]string{
		Main: main, "run.sh": "true\n", "lib/a.py": "", "lib/__pycache__/a.pyc": "x", ".git/config": "x", ".run.sh.swp": "x", "example/x.pdb": "ATOM",
	}))
	var got []string
	for _, file := range f.Files {
		got = append(got, fmt.Sprint(file.Path, " ", file.Executable, " ", file.Size))
	}
	want := []string{"algorithm.toml false 11", "example/x.pdb false 4", "lib/a.py false 0", "run.sh true 5"}
	must.Equal(t, "files", got, want)
	if f.Named("lib") != nil || !f.Has("lib") || f.Has("li") || f.Has("x") || !slices.Equal(f.Under(Examples), []string{"x.pdb"}) {
		t.Error("it does not know what it has")
	}
}

func TestDigestIsOfNamesModesAndBytes(t *testing.T) {
	t.Parallel()
	same := map[string]string{Main: main, "a.py": "1", "lib/b": "2"}
	digests := map[string]string{listed(t, written(t, same)).Digest: "the same"}
	if d := listed(t, written(t, same)).Digest; digests[d] == "" {
		t.Errorf("the same files have another digest")
	}
	for what, change := range map[string]func(dir string) error{
		"bytes":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "a.py"), []byte("2"), 0o600) },
		"mode":    func(dir string) error { return os.Chmod(filepath.Join(dir, "a.py"), 0o700) },
		"name":    func(dir string) error { return os.Rename(filepath.Join(dir, "a.py"), filepath.Join(dir, "c.py")) },
		"another": func(dir string) error { return os.WriteFile(filepath.Join(dir, "d"), nil, 0o600) },
		"fewer":   func(dir string) error { return os.Remove(filepath.Join(dir, "a.py")) },
	} {
		dir := written(t, same)
		must.OK(t, change(dir))
		d := listed(t, dir).Digest
		must.Equal(t, what+": it has the digest of", digests[d], "")
		digests[d] = what
	}
}

func TestFolderRefusesWhatItCannotKeep(t *testing.T) {
	t.Parallel()
	outside := written(t, map[string]string{"secret": "s"})
	for says, add := range map[string]func(dir string) error{
		"link must stay within":   func(dir string) error { return os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "l")) },
		"is a broken link":        func(dir string) error { return os.Symlink("absent", filepath.Join(dir, "l")) },
		"l is not a regular file": func(dir string) error { return os.Symlink("lib", filepath.Join(dir, "l")) },
		"no control characters":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "a\nb"), nil, 0o600) },
		"has more than 64 MiB":    func(dir string) error { return os.Truncate(filepath.Join(dir, "lib/a.py"), MaxBytes+1) },
		"more than 1000 files":    func(dir string) error { return manyFiles(dir, MaxFiles) },
		"can't be read":           func(dir string) error { return os.Chmod(filepath.Join(dir, "lib/a.py"), 0) },
		"up.sh can't be used (":   func(dir string) error { return os.Symlink("../x", filepath.Join(dir, "up.sh")) },
	} {
		if says == "can't be read" && os.Getuid() == 0 {
			continue
		}
		dir := written(t, map[string]string{Main: main, "lib/a.py": "x"})
		must.OK(t, add(dir))
		if _, wrong := readDir(t, dir); len(wrong) != 1 || !strings.Contains(wrong[0], says) {
			t.Errorf("%q, want %q", wrong, says)
		}
	}
	dir := written(t, map[string]string{Main: main, "lib/a.py": "x"})
	must.OK(t, os.Symlink("lib/a.py", filepath.Join(dir, "b.py")))
	must.OK(t, manyFiles(dir, MaxFiles-3))
	if f := listed(t, dir); f.Named("b.py") == nil || len(f.Files) != MaxFiles {
		t.Errorf("%d files, a link among them: %v", len(f.Files), f.Named("b.py"))
	}
}

func manyFiles(dir string, n int) error {
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func TestListIsReadBack(t *testing.T) {
	t.Parallel()
	f := listed(t, written(t, map[string]string{Main: main, "a file.sh": "x", "lib/b": ""}))
	text, got, err := Split(f.Append([]byte(main)))
	if err != nil || string(text) != main || got.Digest != f.Digest {
		t.Errorf("%q, %v, %v", text, got, err)
	}
	must.Equal(t, "files", got.Files, f.Files)
	if text, none, err := Split([]byte(main)); err != nil || none != nil || string(text) != main {
		t.Errorf("%q, %v, %v", text, none, err)
	}
	for _, damaged := range []string{"# x\n", "1 2 3 4 5\n", "# a - many b\n"} {
		if _, _, err := Split([]byte(main + "\n" + heading + "\n" + damaged)); err == nil {
			t.Errorf("%q is a list", damaged)
		}
	}
}

func TestEmbeddedScriptsMayBeRun(t *testing.T) {
	t.Parallel()
	f, _, err := ReadFolder(fstest.MapFS{Main: {}, "run.py": {Data: []byte("#!/usr/bin/python3\n"), Mode: 0o444}, "a": {Data: []byte("#"), Mode: 0o444}})
	must.OK(t, err)
	if !f.Named("run.py").Executable || f.Named("a").Executable {
		t.Errorf("%+v", f.Files)
	}
}

// TestJobsKeepTheFolder edits the folder after the service has read it.
func TestJobsKeepTheFolder(t *testing.T) {
	t.Parallel()
	dir := written(t, map[string]string{Main: main, "run.sh": "echo 1\n", "lib/b": "b"})
	f := listed(t, dir)
	kept := NewStore(filepath.Join(t.TempDir(), "algorithms"))
	f.KeepIn(kept)
	path, err := f.Path()
	must.OK(t, err)
	wantMode := func(name string, mode fs.FileMode) {
		t.Helper()
		if info, err := os.Stat(filepath.Join(path, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	wantMode("run.sh", 0o555)
	wantMode("lib/b", 0o444)
	wantMode("lib", 0o555)
	wantMode(".", 0o555)

	must.OK(t, os.WriteFile(filepath.Join(dir, "run.sh"), []byte("echo 2\n"), 0o700))
	again, err := f.Path()
	text, _ := os.ReadFile(filepath.Join(again, "run.sh"))
	if err != nil || again != path || string(text) != "echo 1\n" {
		t.Errorf("%s has %q, %v", again, text, err)
	}
	late := listed(t, dir)
	late.KeepIn(kept)
	if other, err := late.Path(); err != nil || other == path {
		t.Errorf("%s, %v", other, err)
	}

	// A stored definition finds the copy, even if a restore changed its modes.
	_, stored, err := Split(f.Append([]byte(main)))
	must.OK(t, err)
	stored.KeepIn(kept)
	must.OK(t, os.Chmod(filepath.Join(path, "run.sh"), 0o600))
	if found, err := stored.Path(); err != nil || found != path {
		t.Errorf("%s, %v", found, err)
	}
	wantMode("run.sh", 0o555)

	// A copy for another machine is made from this copy.
	shared := NewStore(t.TempDir())
	there, err := shared.KeepCopy(stored)
	must.OK(t, err)
	if text, err := os.ReadFile(filepath.Join(there, "run.sh")); err != nil || string(text) != "echo 1\n" {
		t.Errorf("%q, %v", text, err)
	}

	must.OK(t, removeTree(path))
	if _, err := stored.Path(); !errors.Is(err, ErrGone) {
		t.Errorf("error %v", err)
	}
	if _, err := f.Path(); !errors.Is(err, ErrChanged) {
		t.Errorf("error %v", err)
	}
	left, err := filepath.Glob(filepath.Join(kept.dir, ".new-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
	if none, err := (*Folder)(nil).Path(); none != "" || err != nil {
		t.Errorf("%q, %v", none, err)
	}
}

func TestDamagedCopyIsMadeAgain(t *testing.T) {
	t.Parallel()
	f := listed(t, written(t, map[string]string{Main: main, "lib/b": "b"}))
	f.KeepIn(NewStore(t.TempDir()))
	path, err := f.Path()
	must.OK(t, err)
	must.OK(t, os.Chmod(filepath.Join(path, "lib"), 0o700))
	must.OK(t, os.Remove(filepath.Join(path, "lib/b")))
	again, err := f.Path()
	if text, _ := os.ReadFile(filepath.Join(again, "lib/b")); err != nil || again != path || string(text) != "b" {
		t.Errorf("%s, %q, %v", again, text, err)
	}
}

func TestGarbageCollectionKeepsUsedAndNew(t *testing.T) {
	t.Parallel()
	s := NewStore(filepath.Join(t.TempDir(), "algorithms"))
	if n, err := s.CollectGarbage(nil); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	var paths []string
	for i := range 3 {
		f := listed(t, written(t, map[string]string{Main: main, "lib/b": fmt.Sprint(i)}))
		f.KeepIn(s)
		path, err := f.Path()
		must.OK(t, err)
		paths = append(paths, path)
	}
	old := time.Now().Add(-2 * keptAtLeast)
	crashed, foreign := filepath.Join(s.dir, ".new-x"), filepath.Join(s.dir, "notes")
	must.OK(t, errors.Join(os.Mkdir(crashed, 0o700), os.Mkdir(foreign, 0o700)))
	for _, path := range []string{paths[0], paths[1], crashed, foreign} {
		must.OK(t, os.Chtimes(path, old, old))
	}
	unknown := errors.New("unknown")
	if n, err := s.CollectGarbage(func(string) (bool, error) { return false, unknown }); n != 1 || !errors.Is(err, unknown) {
		t.Errorf("%d, %v", n, err)
	}
	n, err := s.CollectGarbage(func(digest string) (bool, error) { return digest == filepath.Base(paths[0]), nil })
	if n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for path, want := range map[string]bool{paths[0]: true, paths[1]: false, paths[2]: true, crashed: false, foreign: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}
