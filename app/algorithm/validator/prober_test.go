package validator

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

// program creates a script in its own folder.
func program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prog")
	must.Program(t, path, "#!/bin/sh\n"+script)
	return path
}

func TestProgramsAreAskedOnceUntilTheyChange(t *testing.T) {
	t.Parallel()
	asked := filepath.Join(t.TempDir(), "asked")
	path := program(t, "echo x >> "+asked+"; echo 'Prog version: 1.2 (x)' >&2; exit 3\n")
	p := NewProber(unconfined, filepath.Dir(path)+":/usr/bin:/bin")
	probe := Probe{Argv: []string{"prog", "--version"}, Pattern: regexp.MustCompile(`version:\s+(\S+)`)}
	for range 2 {
		if v, err := p.Version(t.Context(), probe); v != "1.2" || err != nil {
			t.Errorf("%q, %v", v, err)
		}
	}
	if text, _ := os.ReadFile(asked); string(text) != "x\n" {
		t.Errorf("asked %q", text)
	}
	must.Program(t, path, "#!/bin/sh\necho version: 1.10\n")
	if v, err := p.Version(t.Context(), probe); v != "1.10" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
}

func TestVersionsAreBounded(t *testing.T) {
	t.Parallel()
	any := regexp.MustCompile(`(?s).+`)
	for script, want := range map[string]struct{ version, says string }{
		"echo nothing\n":                      {"", "does not match"},
		"head -c 100000 /dev/zero; echo v7\n": {"", "does not match"},
		"printf 'v%0100d' 7\n":                {"v0", ""},
	} {
		probe := Probe{Argv: []string{program(t, script)}, Pattern: regexp.MustCompile(`v\d+`)}
		v, err := NewProber(unconfined, "/usr/bin:/bin").Version(t.Context(), probe)
		if (err == nil) != (want.says == "") || err != nil && !strings.Contains(err.Error(), want.says) || len(v) > maxVersion+len("…") || !strings.HasPrefix(v, want.version) {
			t.Errorf("%q: %q, %v", script, v, err)
		}
	}
	if _, err := NewProber(unconfined, "/usr/bin").Version(t.Context(), Probe{Argv: []string{"no-such-program"}, Pattern: any}); err == nil || !strings.Contains(err.Error(), "find no-such-program") {
		t.Errorf("error %v", err)
	}
	if _, err := NewProber(func(*exec.Cmd, protocol.Sandbox, []string) (func(), error) { return nil, fmt.Errorf("no sandbox") }, "/bin").Version(t.Context(), Probe{Argv: []string{"/bin/sh"}, Pattern: any}); err == nil || err.Error() != "no sandbox" {
		t.Errorf("error %v", err)
	}
}

func TestSelfTestIsBounded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	probe := Probe{Argv: []string{program(t, "sleep 1000 & sleep 1000\n"), "-v"}}
	must.Fail(t, "the error", NewProber(unconfined, "/usr/bin:/bin").SelfTest(ctx, probe), `-v" did not exit within 10s where jobs run`)
}

// A program that hangs is not queried again right away.
func TestProgramThatHangsIsLeftAlone(t *testing.T) {
	t.Parallel()
	asked := filepath.Join(t.TempDir(), "asked")
	p := NewProber(unconfined, "/usr/bin:/bin")
	probe := Probe{Argv: []string{program(t, "echo x >> "+asked+"; sleep 1000 & sleep 1000\n")}, Pattern: regexp.MustCompile(`.+`)}
	begin := time.Now()
	for range 3 {
		if v, err := p.Version(t.Context(), probe); err == nil || !strings.Contains(err.Error(), "did not report its version within 10s") {
			t.Errorf("%q, %v", v, err)
		}
	}
	if text, _ := os.ReadFile(asked); string(text) != "x\n" || time.Since(begin) < probeTimeLimit {
		t.Errorf("asked %q", text)
	}
}
