package task

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"molrun/app/task/protocol"
	"molrun/app/task/sandbox"
	"molrun/app/test/must"
)

// sandboxed creates an attempt whose scripts run in a sandbox.
func sandboxed(t *testing.T, scripts ...string) *attempt {
	t.Helper()
	return sandboxedIn(t, t.TempDir(), scripts...)
}

func sandboxedIn(t *testing.T, dir string, scripts ...string) *attempt {
	t.Helper()
	a := newAttemptIn(t, dir, scripts...)
	bwrap, err := exec.LookPath("bwrap")
	if err == nil {
		a.isolation.Sized, err = sandbox.Probe(t.Context(), bwrap)
	}
	if err != nil {
		must.Skip(t, "bubblewrap can't be used here: %v", err)
	}
	a.isolation.Bubblewrap = bwrap
	return a
}

// shared creates an attempt whose scripts run in a sandbox that another task used before
// and in which that task left as many traces as it could.
func shared(t *testing.T, scripts ...string) *attempt {
	t.Helper()
	rows := t.TempDir()
	a := sandboxedIn(t, filepath.Join(rows, "later"), scripts...)
	a.after = newAttemptIn(t, filepath.Join(rows, "before"), leavesTraces)
	return a
}

// leavesTraces is a script that leaves files, memory and processes.
const leavesTraces = `echo x >/tmp/trace; echo x >/dev/shm/trace; echo x >/var/tmp/trace-2; mkdir in/trace
ipcmk -M 4096 >/dev/null; ipcmk -Q >/dev/null
sleep 1000 & setsid sleep 1000 & (trap '' TERM HUP; sleep 0.3; echo x >out/late) &
exit 0`

// makeAttempt makes an attempt whose scripts run in a sandbox of some kind, or in none.
type makeAttempt func(t *testing.T, scripts ...string) *attempt

// inEach runs a test with each kind of attempt.
func inEach(t *testing.T, kinds map[string]makeAttempt, test func(t *testing.T, make makeAttempt)) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, kind)
		})
	}
}

// inEachSandbox runs a test with each kind of sandbox.
func inEachSandbox(t *testing.T, test func(t *testing.T, sandboxed makeAttempt)) {
	inEach(t, map[string]makeAttempt{"bubblewrap": sandboxed, "shared": shared, "container": contained}, test)
}

func TestSandboxReportsHowTheProgramEnded(t *testing.T) {
	inEachSandbox(t, func(t *testing.T, sandboxed makeAttempt) {
		tests := []struct {
			name, script string
			want         protocol.Outcome
		}{
			{"done", "true", protocol.Outcome{Cause: protocol.CauseDone}},
			{"exit code", "exit 3", protocol.Outcome{Cause: protocol.CauseExit, ExitCode: 3, Step: "1"}},
			{"exit code like a signal's", "exit 137", protocol.Outcome{Cause: protocol.CauseExit, ExitCode: 137, Step: "1"}},
			{"signal", "kill -KILL $$", protocol.Outcome{Cause: protocol.CauseSignal, Signal: "SIGKILL", Step: "1"}},
			{"signal of a child", "sh -c 'kill -SEGV $$'", protocol.Outcome{Cause: protocol.CauseExit, ExitCode: 139, Step: "1"}},
			{"signals to the first process", "kill -TERM 1; kill -HUP 1; kill -INT 1; kill -USR1 1; exit 4", protocol.Outcome{Cause: protocol.CauseExit, ExitCode: 4, Step: "1"}},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				o := sandboxed(t, tt.script).start().outcome()
				got := protocol.Outcome{Cause: o.Cause, ExitCode: o.ExitCode, Signal: o.Signal, Step: o.Step}
				must.Equal(t, "outcome", got, tt.want)
			})
		}
	})
}

func TestUsageIsRecordedInASandbox(t *testing.T) {
	inEachSandbox(t, func(t *testing.T, sandboxed makeAttempt) {
		const memory = 192 // MiB, more than a container runtime uses
		a := sandboxed(t)
		a.spec.Steps = []protocol.Step{{Argv: []string{os.Args[0], "use", strconv.Itoa(memory)}}}
		a.isolation.Sandbox.Read = []string{filepath.Dir(os.Args[0])}
		o := a.start().outcome()
		if o.Cause != protocol.CauseDone || o.CPUSeconds < 0.3 || o.MaxRSSBytes < memory<<20 {
			t.Errorf("outcome %+v, want 0.3 s of CPU and %d MiB", o, memory)
		}
		small := sandboxed(t, "true").start().outcome()
		if small.MaxRSSBytes > 24<<20 {
			t.Errorf("outcome %+v of a program that uses almost nothing", small)
		}
	})
}

func TestSandboxLeavesNothingInTheWorkDirectory(t *testing.T) {
	inEachSandbox(t, func(t *testing.T, sandboxed makeAttempt) {
		a := sandboxed(t, "echo x > /tmp/x; [ -e /var/tmp/x ]", "[ ! -e /tmp/x ]")
		a.start().ends(protocol.CauseDone)
		left, err := filepath.Glob(a.path(WorkDir, ".*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left in the work directory: %v, %v", left, err)
		}
	})
}

// A step can leave symbolic links where bwrap sets up the sandbox of the next step.
func TestLinksDoNotLeadOutOfTheSandbox(t *testing.T) {
	inEachSandbox(t, func(t *testing.T, sandboxed makeAttempt) {
		outside := t.TempDir()
		a := sandboxed(t,
			"rm -rf tmp && ln -s '"+outside+"' tmp; ln -s '"+outside+"' in; ln -s /etc/shadow settings.json; ln -s '"+outside+"' .tmp-1",
			"echo spoilt > tmp/spoilt; echo spoilt > in/spoilt; cat settings.json && exit 9; exit 0")
		must.OK(t, os.Remove(a.path(WorkDir, InDir)))
		a.start().ends(protocol.CauseDone)
		if spoilt, err := os.ReadDir(outside); len(spoilt) > 0 || err != nil {
			t.Errorf("written outside the sandbox: %v, %v", spoilt, err)
		}
	})
}

func TestErrorsNameMissingDirectories(t *testing.T) {
	interpreted := filepath.Join(t.TempDir(), "tool")
	must.OK(t, os.WriteFile(interpreted, []byte("#!/no/such/interpreter\n"), 0o700))
	tests := []struct {
		name, program string
		read          []string
		says          string
	}{
		{"listed", "true", []string{"/no/such/folder"}, "/no/such/folder, listed in read under [sandbox] of the algorithm, can't be read"},
		{"interpreter", interpreted, nil, "add its folder to read under [sandbox] in the algorithm file"},
		{"not anywhere", "/no/such/program", nil, "was not found"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := sandboxed(t)
			a.spec.Steps = []protocol.Step{{Argv: []string{tt.program}}}
			a.isolation.Sandbox.Read = tt.read
			if o := a.start().outcome(); o.Cause != protocol.CauseCannotStart || !strings.Contains(o.Message, tt.says) {
				t.Errorf("outcome %+v, want cannot_start with %q", o, tt.says)
			}
		})
	}
}

// withAndWithoutSandbox runs a test on an attempt with the script, both with and without
// a sandbox.
func withAndWithoutSandbox(t *testing.T, script string, test func(*testing.T, *attempt)) {
	kinds := map[string]makeAttempt{"plain": newAttempt, "sandbox": sandboxed, "shared": shared, "container": contained}
	inEach(t, kinds, func(t *testing.T, make makeAttempt) { test(t, make(t, script)) })
}

// TestFileThatMolrunNamesIsReadable has a file at the path of {molrun} that differs from
// the one that runs the task, as in a worker of an older version that was installed
// elsewhere.
func TestFileThatMolrunNamesIsReadable(t *testing.T) {
	program := filepath.Join(t.TempDir(), "molrun")
	must.OK(t, os.WriteFile(program, []byte("#!/bin/sh\necho later version\n"), 0o700))
	for name, kind := range map[string]func(*testing.T, ...string) *attempt{"bubblewrap": sandboxed, "shared": shared} {
		a := kind(t, `"$0"`)
		a.spec.Program = program
		if a.after != nil {
			a.after.spec.Program = program
		}
		a.spec.Steps[0].Argv = append(a.spec.Steps[0].Argv, program)
		if o := a.start().outcome(); o.Cause != protocol.CauseDone || a.read(LogFile) != "later version\n" {
			t.Errorf("%s: outcome %+v, log %s", name, o, a.read(LogFile))
		}
	}
}

func TestFileSizeIsLimited(t *testing.T) {
	const script = "head -c 1000 /dev/zero > out/small && exec truncate -s 1T out/large"
	withAndWithoutSandbox(t, script, func(t *testing.T, a *attempt) {
		a.isolation.FileBytes = 1 << 20
		o := a.start().outcome()
		if o.Cause != protocol.CauseLimit || o.Signal != "SIGXFSZ" || !strings.Contains(o.Message, "larger than the limit of 1.0 MiB") {
			t.Errorf("outcome %+v, want the limit and the signal", o)
		}
		if info, err := os.Stat(a.path(WorkDir, OutDir, "large")); err == nil && info.Size() > 1<<20 {
			t.Errorf("the file has %d bytes", info.Size())
		}
	})
}

func TestNumberOfProcessesIsLimited(t *testing.T) {
	const script = "i=0; while [ $i -lt 60 ]; do sleep 1000 & i=$((i+1)); done; wait"
	withAndWithoutSandbox(t, script, func(t *testing.T, a *attempt) {
		a.isolation.Processes = 30
		o := a.start().outcome()
		if o.Cause != protocol.CauseLimit || o.Signal != "SIGKILL" || !regexp.MustCompile("exceeds? the limit of 30 ").MatchString(o.Message) {
			t.Errorf("outcome %+v, want the limit and the signal", o)
		}
	})
}

// Many programs look up localhost or their own host, and some exit if they get no answer.
func TestLocalhostHasAnAddressInTheSandbox(t *testing.T) {
	inEachSandbox(t, func(t *testing.T, sandboxed makeAttempt) {
		a := sandboxed(t, `getent hosts localhost "$(hostname)" > out/hosts && ls /proc/self/fd | wc -l > out/files`)
		a.start().ends(protocol.CauseDone)
		if got := a.read(WorkDir, "out", "hosts"); strings.Count(got, "\n") != 2 || !strings.Contains(got, "localhost") {
			t.Errorf("addresses %q", got)
		}
		if got := strings.TrimSpace(a.read(WorkDir, "out", "files")); got != "4" { // 0 to 2, and that of ls itself
			t.Errorf("the program has %s open files", got)
		}
	})
}
