package task

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// confined runs a script in a sandbox, as a validator, and gives what it printed
// and what it left in its folder.
func confined(t *testing.T, i Isolation, script string, files ...string) (out string, left []os.DirEntry, err error) {
	t.Helper()
	beside := t.TempDir()
	dir := filepath.Join(beside, "home")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(dir, 0o700))
	c := exec.Command("sh", append([]string{"-c", script, "check"}, files...)...)
	c.Dir, c.Env, c.Stdin = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C"}, strings.NewReader("asked\n")
	done, err := i.Confine(c, files)
	must(err)
	said, err := c.CombinedOutput()
	done()
	all, listErr := os.ReadDir(beside)
	must(listErr)
	if len(all) != 1 {
		t.Errorf("beside its folder it leaves %v", all)
	}
	left, listErr = os.ReadDir(dir)
	must(listErr)
	return string(said), left, err
}

func TestConfinedProgramReadsItsFilesAndWritesToItsFolder(t *testing.T) {
	for _, kind := range []string{"in memory", "on disk"} {
		t.Run(kind, func(t *testing.T) {
			i := boxed(t).isolation
			i.Sized = i.Sized && kind == "in memory"
			outside := t.TempDir()
			for _, file := range []string{"given", "hidden"} {
				if err := os.WriteFile(filepath.Join(outside, file), []byte(file+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			const script = `ls -A; ls "${1%/*}"; cat "$1"; echo x > "$HOME/x" && echo y > /tmp/y && cat "$HOME/x" /tmp/y; cat; exit 7`
			out, left, err := confined(t, i, script, filepath.Join(outside, "given"))
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 7 || out != "given\ngiven\nx\ny\nasked\n" {
				t.Errorf("%q, %v", out, err)
			}
			if i.Sized && len(left) > 0 {
				t.Errorf("it has written to the disk: %v", left)
			}
		})
	}
}

func TestConfinedProgramFillsNoMemory(t *testing.T) {
	i := boxed(t).isolation
	if !i.Sized {
		t.Skip("skipped: this bubblewrap can't bound what is kept in memory")
	}
	out, _, err := confined(t, i, `head -c 50000000 /dev/zero > "$HOME/a" && ! head -c 50000000 /dev/zero > "$HOME/b"`)
	if err != nil || !strings.Contains(out, "No space left") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestConfinedProgramHasToBeThere(t *testing.T) {
	c := exec.Command("no-such-program")
	c.Dir = t.TempDir()
	if _, err := boxed(t).isolation.Confine(c, nil); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("error %v", err)
	}
}
