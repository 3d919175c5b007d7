package result

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"molrun/app/task"
	"molrun/app/test/must"
)

func copyPath(to, from string, check func() error) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	return errors.Join(CopyFile(out, in, check), out.Close())
}

func TestCopyFile(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, 4096, 3<<20 + 17} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(rng.Uint32())
		}
		must.OK(t, os.WriteFile(from, want, 0o600))
		must.OK(t, copyPath(to, from, goOn))
		if must.Read(t, to) != string(want) {
			t.Errorf("%d bytes: the copy differs", size)
		}
	}
}

func TestCopyFileStopsWhenCheckFails(t *testing.T) {
	from, stop := filepath.Join(t.TempDir(), "from"), errors.New("stop")
	must.OK(t, os.WriteFile(from, []byte("x"), 0o600))
	if err := copyPath(from+".copy", from, func() error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
}

func TestCopyOutputDoesNotFollowALink(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	home, away := filepath.Join(dir, "home"), filepath.Join(dir, "away")
	must.Write(t, filepath.Join(away, task.WorkDir, task.OutDir, "checkpoint"), "")
	must.OK(t, os.Symlink(away, home))
	copied := func() bool {
		must.OK(t, CopyOutput(to, home, goOn))
		return task.Exists(to, "checkpoint")
	}
	if copied() {
		t.Error("the output behind a link was copied")
	}
	must.OK(t, os.Remove(home))
	must.OK(t, os.Rename(away, home))
	if !copied() {
		t.Error("the output was not copied")
	}
}

func TestCopyTreeFollowsNoLink(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	must.Write(t, filepath.Join(from, "d/e/f"), "x")
	must.OK(t, os.Symlink("/etc/passwd", filepath.Join(from, "d/link")))
	must.OK(t, os.Symlink("/etc", filepath.Join(from, "etc")))
	must.OK(t, syscall.Mkfifo(filepath.Join(from, "fifo"), 0o600))
	must.OK(t, copyTree(to, from, goOn))
	var got []string
	must.OK(t, filepath.WalkDir(to, func(path string, _ os.DirEntry, err error) error {
		got = append(got, strings.TrimPrefix(path, to))
		if info, lost := os.Lstat(path); lost == nil && !info.IsDir() && !info.Mode().IsRegular() {
			got[len(got)-1] += " is " + kindOf(info.Mode())
		}
		return err
	}))
	must.Equal(t, fmt.Sprintf("copied %v", got), "|/d|/d/e|/d/e/f|/d/link is a link|/etc is a link|/fifo is a pipe", strings.Join(got, "|"))
}

func TestCopyTreeCopiesAnyNamesAndModes(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	must.OK(t, os.Mkdir(to, 0o700))
	for _, name := range []string{"bad\xff/f\n", "closed/deep/f", "f"} {
		must.Write(t, filepath.Join(from, name), "x")
	}
	unprivileged(t, dir)
	for _, name := range []string{"closed/deep/f", "closed/deep", "closed", "f", "."} {
		must.OK(t, os.Chmod(filepath.Join(from, name), 0))
	}
	must.OK(t, copyTree(to, from, goOn))
	for _, name := range []string{"bad\xff/f\n", "closed/deep/f", "f"} {
		if text, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(text) != "x" {
			t.Errorf("%q: %q, %v", name, text, err)
		}
	}
}
