package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"molrun/app/task/process"
	"molrun/app/test/must"
)

// TestMain lets the test binary act as the first process in a sandbox.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "task" && os.Args[2] == "--inside" {
		code := 0
		if err := Init(""); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		// Under the race detector, os.Exit would sleep for a second.
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(code), 0, 0)
	}
	os.Exit(m.Run())
}

// confinement returns a Confinement with the installed bubblewrap.
func confinement(t *testing.T) Confinement {
	t.Helper()
	bwrap, err := exec.LookPath("bwrap")
	sized := false
	if err == nil {
		sized, err = Probe(t.Context(), bwrap)
	}
	if err != nil {
		must.Skip(t, "bubblewrap can't be used here: %v", err)
	}
	return Confinement{Bubblewrap: bwrap, Sized: sized}
}

// inside runs a script, which must succeed.
func inside(t *testing.T, o Confinement, script string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", "-c", script)
	c.Dir, c.Env = t.TempDir(), []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	done, err := Confine(c, o)
	must.OK(t, err)
	defer done()
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v, %s", script, err, out)
	}
	return string(out)
}

// confined runs a script as if it were a validator. It returns the script's output and
// the files left in its directory.
func confined(t *testing.T, o Confinement, script string) (out string, left []os.DirEntry, err error) {
	t.Helper()
	parent := t.TempDir()
	dir := filepath.Join(parent, "home")
	must.OK(t, os.Mkdir(dir, 0o700))
	c := exec.Command("sh", append([]string{"-c", script, "check"}, o.Files...)...)
	c.Dir, c.Env, c.Stdin = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C"}, strings.NewReader("asked\n")
	done, err := Confine(c, o)
	must.OK(t, err)
	output, err := c.CombinedOutput()
	done()
	all, listErr := os.ReadDir(parent)
	must.OK(t, listErr)
	if len(all) != 1 {
		t.Errorf("files outside its directory: %v", all)
	}
	left, listErr = os.ReadDir(dir)
	must.OK(t, listErr)
	return string(output), left, err
}

func TestConfinedProgramReadsItsFilesAndWritesToItsDirectory(t *testing.T) {
	for _, kind := range []string{"in memory", "on disk"} {
		t.Run(kind, func(t *testing.T) {
			o := confinement(t)
			o.Sized = o.Sized && kind == "in memory"
			outside := t.TempDir()
			for _, file := range []string{"given", "hidden"} {
				must.OK(t, os.WriteFile(filepath.Join(outside, file), []byte(file+"\n"), 0o600))
			}
			o.Files = []string{filepath.Join(outside, "given")}
			const script = `ls -A; ls "${1%/*}"; cat "$1"; echo x > "$HOME/x" && echo y > /tmp/y && cat "$HOME/x" /tmp/y; cat; exit 7`
			out, left, err := confined(t, o, script)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 7 || out != "given\ngiven\nx\ny\nasked\n" {
				t.Errorf("%q, %v", out, err)
			}
			if o.Sized && len(left) > 0 {
				t.Errorf("it wrote to the disk: %v", left)
			}
		})
	}
}

func TestConfinedProgramHasLimitedScratchSpace(t *testing.T) {
	o := confinement(t)
	if !o.Sized {
		t.Skip("this bubblewrap can't limit the size of memory")
	}
	out, _, err := confined(t, o, `head -c 50000000 /dev/zero > "$HOME/a" && ! head -c 50000000 /dev/zero > "$HOME/b"`)
	if err != nil || !strings.Contains(out, "No space left") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestConfinedProgramMustExist(t *testing.T) {
	c := exec.Command("no-such-program")
	c.Dir = t.TempDir()
	must.Fail(t, "the error", must.Error2(Confine(c, confinement(t))), "no-such-program")
}

func TestConfinedProgramKeepsTheDescriptorsThatItWasGiven(t *testing.T) {
	o := confinement(t)
	r, w, err := os.Pipe()
	must.OK(t, err)
	defer r.Close()
	if _, err := w.WriteString("given"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	c := exec.CommandContext(t.Context(), "sh", "-c", "cat <&3; grep -c root /etc/passwd")
	c.Dir, c.Env, c.ExtraFiles = t.TempDir(), []string{"PATH=/usr/bin:/bin"}, []*os.File{r}
	done, err := Confine(c, o)
	must.OK(t, err)
	defer done()
	if out, err := c.CombinedOutput(); err != nil || string(out) != "given1\n" {
		t.Errorf("%q, %v; want what the descriptor 3 holds, and the accounts", out, err)
	}
}

func TestConfinedProgramMakesNoCallThatTasksMayNotMake(t *testing.T) {
	if !process.CanDenyCalls() {
		must.Skip(t, "the kernel does not support system call filters")
	}
	// Without the filter, --disable-userns causes a different error.
	if out, _, err := confined(t, confinement(t), "unshare --user true"); err == nil || !strings.Contains(out, "Operation not permitted") {
		t.Errorf("%q, %v; want no user namespace", out, err)
	}
}
