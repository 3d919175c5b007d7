package task

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

// After a power failure, an outcome must not exist without the output: every file and
// directory is synced before the outcome appears.
func TestOutputIsDurableBeforeItsOutcome(t *testing.T) {
	if err := exec.Command("strace", "-qq", "-e", "trace=none", "true").Run(); err != nil {
		t.Skipf("strace can't trace here: %v", err)
	}
	a := newAttempt(t, "mkdir out/d; echo x > out/d/f; ln -s /etc/passwd out/link; mkfifo out/fifo")
	must.OK(t, WriteSpec(a.dir, a.spec))
	trace := filepath.Join(t.TempDir(), "trace")
	c := exec.Command("strace", "-f", "-qq", "-y", "-e", "trace=fsync,rename,renameat,renameat2", "-e", "signal=none",
		"-o", trace, os.Args[0], "task", a.dir)
	c.Env = a.env
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(trace)
	must.OK(t, err)
	before, _, appeared := strings.Cut(string(text), "/"+OutcomeFile+`"`)
	if !appeared {
		t.Fatalf("no outcome in the trace:\n%s", text)
	}
	for _, name := range []string{"out", "out/d", "out/d/f"} {
		if !strings.Contains(before, "<"+a.path(WorkDir, name)+">)") {
			t.Errorf("%s is not synced before the outcome:\n%s", name, text)
		}
	}
}

func TestSyncCountsRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	counted := func(dir string, files int, bytes int64) {
		t.Helper()
		f, b, err := syncTree(dir)
		if f != files || b != bytes || err != nil {
			t.Errorf("%d files with %d bytes, %v; want %d with %d", f, b, err, files, bytes)
		}
	}
	must.OK(t, os.Symlink("/nowhere", filepath.Join(dir, "link")))
	must.OK(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	must.OK(t, os.Mkdir(filepath.Join(dir, "bad\xff"), 0o700))
	must.OK(t, os.WriteFile(filepath.Join(dir, "bad\xff", "file"), []byte("12345"), 0o600))
	must.OK(t, os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600))
	counted(dir, 2, 5)
	counted(filepath.Join(dir, "absent"), 0, 0)
	counted(filepath.Join(dir, "link"), 0, 0)
}

func TestTaskIsInterruptedIfItsOutputCannotBeStored(t *testing.T) {
	s := &shim{host: &host{}, work: strings.Repeat("long/", 2000)} // the path exceeds the system's limit
	s.decide(protocol.CauseDone, "")
	s.syncOutput()
	if s.outcome.Cause != protocol.CauseInterrupted || !strings.Contains(s.outcome.Message, "name too long") {
		t.Errorf("outcome %+v, want interrupted, with the system's error", s.outcome)
	}
}
