package task

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

func TestOutcomeSaysHowTheProgramEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	noScript, notExecutable := filepath.Join(dir, "noscript"), filepath.Join(dir, "notexecutable")
	put(t, noScript, "\x00\x01")
	must.Write(t, notExecutable, "#!/bin/sh\n")
	sh := func(script string) []string { return []string{"sh", "-c", script} }
	cannotStart := protocol.Outcome{Cause: protocol.CauseCannotStart, Step: "1"}
	tests := []struct {
		name    string
		argv    []string
		want    protocol.Outcome
		message string // a part of it
	}{
		{"exit 0", sh("exit 0"), protocol.Outcome{Cause: protocol.CauseDone}, ""},
		{"exit 3", sh("exit 3"), protocol.Outcome{Cause: protocol.CauseExit, ExitCode: 3, Step: "1"}, "exit code 3"},
		{"signal", sh("kill -SEGV $$"), protocol.Outcome{Cause: protocol.CauseSignal, Signal: "SIGSEGV", Step: "1"}, "SIGSEGV"},
		{"not on PATH", []string{"no-such-program"}, cannotStart, `The program "no-such-program" was not found`},
		{"no such file", []string{"/no/such/program"}, cannotStart, "was not found"},
		{"not executable", []string{notExecutable}, cannotStart, "No permission to execute"},
		{"not a program", []string{noScript}, cannotStart, "another kind of machine"},
		{"arguments too long", []string{"true", strings.Repeat("x", 4<<20)}, cannotStart, "too long"},
		{"no program", []string{""}, cannotStart, "has no program"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAttempt(t)
			a.spec.Steps = []protocol.Step{{Argv: tt.argv}}
			got := a.start().outcome()
			if !strings.Contains(got.Message, tt.message) || (tt.message == "") != (got.Message == "") {
				t.Errorf("message %q, want %q in it", got.Message, tt.message)
			}
			tt.want.Protocol, tt.want.Isolation = Protocol, "none"
			if diff := cmp.Diff(&tt.want, got, cmpopts.IgnoreFields(protocol.Outcome{}, "StartedAt", "EndedAt", "Message", "CPUSeconds", "MaxRSSBytes")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUsageIsRecorded(t *testing.T) {
	t.Parallel()
	service := make([]byte, 160<<20) // the size of the starter must not matter
	for i := 0; i < len(service); i += 1 << 10 {
		service[i] = 1
	}
	a := newAttempt(t)
	// A grandchild uses the memory; its parent is a shell that waits for it.
	a.spec.Steps = []protocol.Step{{Argv: []string{"sh", "-c", `"$0" use 96 & wait`, os.Args[0]}}}
	o := a.start().outcome()
	if o.Cause != protocol.CauseDone || o.CPUSeconds < 0.25 || o.MaxRSSBytes < 96<<20 || o.MaxRSSBytes > 400<<20 {
		t.Errorf("outcome %+v, log %s; want 0.25 s or more of CPU and 96 MiB of memory or somewhat more", o, a.read(LogFile))
	}
	runtime.KeepAlive(service)
}

func TestTaskRunsOnce(t *testing.T) {
	t.Parallel()
	a := newAttempt(t, "echo once >> out/count; echo > out/ready; while [ ! -e out/go ]; do sleep 0.05; done")
	first := a.start()
	a.untilFile(WorkDir, "out", "ready")
	refused := func(when string) {
		t.Helper()
		before := a.contents()
		must.Equal(t, when+": exit code", a.startAgain().wait(), ExitRefused)
		must.Equal(t, when+": the files", a.contents(), before)
	}
	refused("while another one runs")
	a.release()
	first.outcome()
	refused("after the end")
	must.Equal(t, "the program wrote", a.read(WorkDir, "out", "count"), "once\n")
}

// contents returns the attempt's files with their content, except the file that the test
// writes.
func (a *attempt) contents() map[string]string {
	a.t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(a.dir)
	must.OK(a.t, err)
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != "shim.log" {
			all[e.Name()] = a.read(e.Name())
		}
	}
	return all
}

func TestLostTaskIsNotRunAgain(t *testing.T) {
	a := newAttempt(t, "echo > out/ready; sleep 1000")
	r := a.start()
	a.untilFile(WorkDir, "out", "ready")
	r.signal(syscall.SIGKILL)
	r.wait()
	must.Equal(t, "exit code", a.startAgain().wait(), ExitRefused)
}

func TestLockIsInheritedAndNotPassedOn(t *testing.T) {
	t.Parallel()
	a := newAttempt(t, "ls /proc/$$/fd; echo > out/ready; while [ ! -e out/go ]; do sleep 0.05; done")
	must.OK(t, WriteSpec(a.dir, a.spec))
	lock, err := Lock(a.dir)
	must.OK(t, err)
	r := a.startWith(lock)
	must.OK(t, lock.Close())
	if locked, err := Locked(a.dir); !locked || err != nil {
		t.Errorf("after the start locked = %v, %v", locked, err)
	}
	a.untilFile(WorkDir, "out", "ready")
	if locked, err := Locked(a.dir); !locked || err != nil {
		t.Errorf("while it runs locked = %v, %v", locked, err)
	}
	a.release()
	r.outcome()
	if got := strings.Fields(a.read(LogFile)); slices.Contains(got, "3") {
		t.Errorf("the program has the descriptors %q", got)
	}
}

func TestLockOfAnotherTaskIsRefused(t *testing.T) {
	a := newAttempt(t, "true")
	must.OK(t, WriteSpec(a.dir, a.spec))
	other, err := Lock(t.TempDir())
	must.OK(t, err)
	defer other.Close()
	if code := a.startWith(other).wait(); code != 1 {
		t.Errorf("exit code %d, want 1; %s", code, a.read("shim.log"))
	}
	if Exists(a.dir, RunFile) {
		t.Error("the task started without its lock")
	}
}

func TestUnreadableTaskCannotStart(t *testing.T) {
	tests := []struct{ name, json, message string }{
		{"newer", `{"protocol":2,"token":"t","steps":[{"argv":["true"]}]}`, "protocol version 2"},
		{"damaged", `{"protocol":1,`, "task.json"},
		{"absent", "", "task.json"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAttempt(t)
			if tt.json != "" {
				must.Write(t, a.path(SpecFile), tt.json)
			}
			o := a.startAgain().outcome()
			if o.Cause != protocol.CauseCannotStart || !strings.Contains(o.Message, tt.message) {
				t.Errorf("outcome %+v, want cannot_start and %q", o, tt.message)
			}
		})
	}
}

// A program that fills the disk must not prevent its outcome from being written.
func TestOutcomeIsWrittenOnAFullDisk(t *testing.T) {
	a := newAttempt(t, "cat /dev/zero > fill; yes talking | head -c 100000; exit 5")
	full := t.TempDir()
	if err := syscall.Mount("none", full, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("a small disk needs root: %v", err)
	}
	t.Cleanup(func() { must.OK(t, syscall.Unmount(full, syscall.MNT_DETACH)) })
	a.dir = full
	must.OK(t, os.MkdirAll(a.path(WorkDir), 0o700))
	o := a.start().outcome()
	if o.Cause != protocol.CauseExit || o.ExitCode != 5 {
		t.Errorf("outcome %+v, want exit code 5", o)
	}
	if info, err := os.Stat(a.path(WorkDir, "fill")); err != nil || info.Size() == 0 {
		t.Errorf("the disk was not filled: %v", err)
	}
}

func TestOutputBelowTheLimitIsLoggedWhole(t *testing.T) {
	t.Parallel()
	a := newAttempt(t, "seq 1 200000; seq 200001 400000 >&2")
	a.start().outcome()
	var want bytes.Buffer
	for i := 1; i <= 400000; i++ {
		fmt.Fprintln(&want, i)
	}
	if got := a.read(LogFile); got != want.String() {
		t.Errorf("log has %d bytes, want %d", len(got), want.Len())
	}
}
