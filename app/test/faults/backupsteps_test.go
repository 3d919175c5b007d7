package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"molrun/app/test/must"
)

// changing lists the system calls that change a directory of backups.
var changing = []string{
	"write", "pwrite64", "ftruncate", "fsync", "fdatasync", "openat", "mkdirat", "mkdir",
	"unlinkat", "unlink", "rmdir", "renameat", "renameat2", "rename", "linkat", "link", "copy_file_range", "sendfile",
}

// growing lists the system calls that fail on a full disk.
var growing = []string{"write", "pwrite64", "mkdirat", "mkdir", "linkat", "link", "copy_file_range", "sendfile"}

// A backup that also removes older ones is killed at each of its system calls in turn, or
// finds the disk full from that call on. So is a test restore. A restorable backup must
// exist at all times, and the next backup must leave no partial files.
func TestBackupsSurviveFaultsAtEachStep(t *testing.T) {
	t.Parallel()
	needInjection(t)
	s := newServer(t, "", "")
	s.start()
	must.OK(t, s.upload(s.client(), "a.fasta"))
	s.stop()
	b := backups{s, s.path("backups"), s.path("before")}
	for range 3 {
		b.mustRun("backup", b.dir)
	}
	must.OK(t, os.CopyFS(b.before, os.DirFS(b.dir)))
	take, try := []string{"backup", b.dir, "--keep", "1d"}, []string{"restore", b.dir, "--try"}
	for _, tt := range []struct {
		name string
		args []string
		in   injection
	}{
		{"killed backup", take, injection{Calls: changing}},
		{"backup on a full disk", take, injection{Calls: growing, Error: syscall.ENOSPC, Lasts: true}},
		{"killed trial", try, injection{Calls: changing}},
		{"trial on a full disk", try, injection{Calls: growing, Error: syscall.ENOSPC, Lasts: true}},
	} {
		tt.in.Dir, tt.in.Files, tt.in.Trace = s.dir, `^backups(/|$)`, s.path("trace")
		steps := b.steps(tt.in, tt.args)
		if steps < 10 {
			t.Fatalf("%s: only %d steps", tt.name, steps)
		}
		few := 8 * *positions
		step := max(1, steps/few)
		for n := 1; n <= steps; n += step {
			tt.in.When = n
			if b.fails(tt.in, tt.args); t.Failed() {
				trace, _ := os.ReadFile(tt.in.Trace)
				t.Fatalf("%s, at step %d of %d: %s", tt.name, n, steps, trace)
			}
		}
	}
}

// backups are the backups of a stopped service.
type backups struct {
	*server
	dir, before string // each run begins with a copy of before
}

func (b backups) mustRun(args ...string) {
	b.t.Helper()
	if out, err := b.command(b.t.Context(), args...).CombinedOutput(); err != nil {
		b.t.Errorf("molrun %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// whole returns the names of the complete backups.
func (b backups) whole() (names []string) {
	b.t.Helper()
	all, err := filepath.Glob(filepath.Join(b.dir, "2*Z*"))
	must.OK(b.t, err)
	for _, name := range all {
		names = append(names, filepath.Base(name))
	}
	return names
}

func (b backups) reset() {
	b.t.Helper()
	must.OK(b.t, errors.Join(os.RemoveAll(b.dir), os.CopyFS(b.dir, os.DirFS(b.before))))
}

// steps returns the number of system calls that a command makes.
func (b backups) steps(in injection, args []string) int {
	b.t.Helper()
	b.reset()
	_ = os.Remove(in.Trace) // the file might not exist
	in.Watch = true
	watched := *b.server
	watched.prefix = in.prefix(b.t)
	if out, err := watched.command(b.t.Context(), args...).CombinedOutput(); err != nil {
		b.t.Fatalf("molrun %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return in.failures()
}

// fails runs a command in which a system call fails, checks the backups afterwards, and
// runs the command again.
func (b backups) fails(in injection, args []string) {
	b.t.Helper()
	b.reset()
	old := b.whole()
	_ = os.Remove(in.Trace) // the file might not exist
	faulty := *b.server
	faulty.prefix = in.prefix(b.t)
	out, err := faulty.command(b.t.Context(), args...).CombinedOutput()
	if !in.made() {
		b.t.Logf("step %d did not come again: %v", in.When, err)
	}
	var exit *exec.ExitError
	if killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL; killed != (in.Error == 0) && in.made() {
		b.t.Errorf("molrun ended with %v\n%s", err, out)
	}
	now := b.whole()
	if lost := slices.DeleteFunc(slices.Clone(old), func(name string) bool { return slices.Contains(now, name) }); len(lost) > 0 && slices.Max(now) <= slices.Max(old) {
		b.t.Errorf("%v were deleted, and there is no newer one", lost)
	}
	for _, name := range now {
		b.mustRun("restore", b.dir, "--snapshot", name, "--try")
	}
	b.mustRun(args...)
	want := len(old)
	if args[0] == "backup" {
		want = 1
	}
	entries, err := os.ReadDir(b.dir)
	must.OK(b.t, err)
	var left []string
	for _, e := range entries {
		if e.IsDir() {
			left = append(left, e.Name())
		}
	}
	if len(left) != want || len(b.whole()) != want {
		b.t.Errorf("the directory has %s, want %d backups", fmt.Sprint(left), want)
	}
}
