package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// hiddenFile is a file on the machine that is not visible in any sandbox.
const hiddenFile = "/var/lib/dpkg/status"

// probedFile writes an algorithm file that contains these lines.
func probedFile(t *testing.T, lines string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "tool.toml")
	must.OK(t, os.WriteFile(file, []byte("format = 1\ntype = \"tool\"\nversion = \"1\"\ncommand = [\"true\"]\n"+lines+"\n[example]\nsettings = {}\n"), 0o600))
	return file
}

// programFile writes an executable file into a directory of its own.
func programFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tool")
	must.OK(t, os.WriteFile(path, []byte(text), 0o700))
	return path
}

// linkedProgram builds a program that needs a shared library from another directory. It
// runs outside the sandbox.
func linkedProgram(t *testing.T) string {
	t.Helper()
	must.Installed(t, "gcc")
	other, own := t.TempDir(), t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(own, "part.c"), []byte("int part(void) { return 0; }\n"), 0o600))
	must.OK(t, os.WriteFile(filepath.Join(own, "tool.c"), []byte("int part(void);\nint main(void) { return part(); }\n"), 0o600))
	for _, args := range [][]string{
		{"-shared", "-fPIC", "-o", filepath.Join(other, "libpart.so"), "part.c"},
		{"-o", "tool", "tool.c", "-L" + other, "-lpart", "-Wl,-rpath," + other},
	} {
		c := exec.Command("gcc", args...)
		c.Dir = own
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("gcc %q: %v\n%s", args, err, out)
		}
	}
	if out, err := exec.Command(filepath.Join(own, "tool")).CombinedOutput(); err != nil {
		t.Fatalf("the program does not run outside: %v, %s", err, out)
	}
	return filepath.Join(own, "tool")
}

func TestCheckRunsTheProbeInTheSandbox(t *testing.T) {
	t.Parallel()
	if !plain(t).sandboxed() {
		must.Skip(t, "this machine has no sandbox")
	}
	if _, err := os.Stat(hiddenFile); err != nil {
		must.Skip(t, "%s is not there", hiddenFile)
	}
	home := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(home, "weights"), nil, 0o600))
	conda := t.TempDir()
	must.OK(t, os.MkdirAll(filepath.Join(conda, "bin"), 0o700))
	must.OK(t, os.MkdirAll(filepath.Join(conda, "share", "weights"), 0o700))
	must.OK(t, os.WriteFile(filepath.Join(conda, "bin", "conda-tool"), []byte("#!/bin/sh\nconda-helper\n"), 0o700))
	must.OK(t, os.WriteFile(filepath.Join(conda, "bin", "conda-helper"), []byte("#!/bin/sh\nls $CONDA_PREFIX/share/weights\n"), 0o700))
	tests := map[string]struct{ lines, says string }{
		"conda":                {fmt.Sprintf("conda = %q\nprobe = [\"conda-tool\"]", conda), ""},
		"works":                {`probe = ["true"]`, ""},
		"file that is seen":    {fmt.Sprintf("probe = [\"cat\", %q]\n[sandbox]\nread = [%[1]q]", filepath.Join(home, "weights")), ""},
		"variable":             {"probe = [\"sh\", \"-c\", \"test $WORD = said\"]\n[env]\nWORD = \"said\"", ""},
		"hidden file":          {fmt.Sprintf(`probe = ["sh", "-c", "cat %s"]`, hiddenFile), hiddenFile + " is on this machine, but not visible inside the sandbox: list it in [sandbox] read"},
		"library":              {fmt.Sprintf(`probe = [%q]`, linkedProgram(t)), "it lacks the shared library libpart.so: install it, or list its folder under [sandbox] read"},
		"no interpreter":       {fmt.Sprintf(`probe = [%q]`, programFile(t, "#!/no/such/python\n")), "its first line names the interpreter /no/such/python, which does not exist"},
		"none on PATH":         {fmt.Sprintf(`probe = [%q]`, programFile(t, "#!/usr/bin/env no-such-python\n")), "its first line names the interpreter no-such-python, which is not on PATH"},
		"no program":           {`probe = ["no-such-tool"]`, "the program no-such-tool does not exist"},
		"exit status":          {`probe = ["sh", "-c", "echo begun; echo something broke >&2; exit 3"]`, "does not work where jobs run: exit status 3: something broke"},
		"signal":               {`probe = ["sh", "-c", "kill -SEGV $$"]`, "it was killed by signal segmentation fault"},
		"network":              {`probe = ["sh", "-c", "grep -v -e lo: -e '|' /proc/net/dev && exit 4; exit 0"]`, ""},
		"says no version":      {"version_command = [\"echo\", \"hello\"]\nversion_pattern = 'tool (\\d+)'", "it does not report its version: version_pattern does not match: hello"},
		"version, 1":           {"version_command = [\"sh\", \"-c\", \"echo tool 1; exit 1\"]\nversion_pattern = 'tool (\\d+)'", ""},
		"probe before version": {"probe = [\"false\"]\nversion_command = [\"echo\", \"tool 1\"]\nversion_pattern = 'tool (\\d+)'", "exit status 1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, errs, code := outside(t, "algorithms", "check", probedFile(t, tt.lines))
			want, wantCode := " is valid and ready on this machine\n", 0
			if tt.says != "" {
				want, wantCode = " is valid; not ready on this machine: ", exitFailed
			}
			if code != wantCode || !strings.Contains(out, want) || !strings.Contains(out, tt.says) {
				t.Errorf("exit code %d, want %d: %s%swant %q and %q", code, wantCode, out, errs, want, tt.says)
			}
		})
	}
}

// In a sandbox, a script in a home directory is visible if the command names it as an
// argument, but files named by settings are not.
func TestScriptThatACommandNamesIsSeen(t *testing.T) {
	t.Parallel()
	script := programFile(t, "cat \"$1\" && exit 1; echo folded > out/folded\n")
	must.OK(t, os.WriteFile(filepath.Join(filepath.Dir(script), ".bashrc"), []byte("secret"), 0o600)) // looks like a home directory
	s := startServer(t, serverOptions{algorithms: map[string]string{"fold.toml": fmt.Sprintf(`format = 1
type = "fold"
version = "1"
command = ["sh", %q, "{settings.path}"]

[[parameters]]
name = "path"
type = "string"
required = true
`, script)}})
	if !s.sandboxed() {
		must.Skip(t, "this machine has no sandbox")
	}
	u := s.user("lab", "ann@lab.example")
	u.submit("j", "fold", fmt.Sprintf(`{"path":%q}`, filepath.Join(filepath.Dir(script), ".bashrc")))
	u.completed("j")
	u.wantResult("j", "folded", "folded\n")
}

// molrun algorithms test first runs the self-test, as check does.
func TestTestRunsTheProbe(t *testing.T) {
	t.Parallel()
	test := func(lines string) (out string, code int) {
		c := exec.Command(molrun, "algorithms", "test", probedFile(t, lines))
		c.Dir = t.TempDir()
		c.Env = append(os.Environ(), "MOLRUN_DATABASE_FILE_SYSTEM=any")
		text, _ := c.CombinedOutput() // the exit code tells whether it succeeded
		return string(text), c.ProcessState.ExitCode()
	}
	out, code := test(`probe = ["sh", "-c", "echo something broke >&2; exit 3"]`)
	if code != exitFailed || !strings.Contains(out, "FAILED: ") || !strings.Contains(out, "exit status 3: something broke") || strings.Contains(out, "COMPLETED") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := test(`probe = ["true"]`); code != 0 || !strings.Contains(out, "1 passed") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// TestProbeOfTheFormatReferenceWorks runs the example for the key probe in the
// documentation, in the directory that it requires.
func TestProbeOfTheFormatReferenceWorks(t *testing.T) {
	t.Parallel()
	must.Installed(t, "python3")
	text := must.Read(t, "../../../web/docs/format.md")
	blocks := regexp.MustCompile("(?ms)^```toml\n([^`]*?^probe = .*?)^```").FindAllStringSubmatch(text, -1)
	if len(blocks) != 1 {
		t.Fatalf("%d examples of probe", len(blocks))
	}
	folder := filepath.Join(t.TempDir(), "relax")
	must.OK(t, os.Mkdir(folder, 0o700))
	must.OK(t, os.WriteFile(filepath.Join(folder, "relax.py"), nil, 0o600))
	main := filepath.Join(folder, "algorithm.toml")
	must.OK(t, os.WriteFile(main, []byte(blocks[0][1]), 0o600))
	if out, errs, code := outside(t, "algorithms", "check", folder); code != 0 || !strings.Contains(out, "relax 1 is valid and ready") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	must.OK(t, os.WriteFile(main, []byte(strings.Replace(blocks[0][1], "import json, ssl", "import no_such_module", 1)), 0o600))
	if out, errs, code := outside(t, "algorithms", "check", folder); code != exitFailed || !strings.Contains(out, "exit status 1: ModuleNotFoundError: No module named 'no_such_module'") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}
