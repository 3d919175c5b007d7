package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/executor/local"
	"molrun/app/task"
	"molrun/app/test/conformance"
	"molrun/app/test/must"
)

// machine returns the isolation that this machine supports.
func machine(t *testing.T, sandbox string) local.Isolation {
	t.Helper()
	i, err := local.Isolate(t.Context(), local.IsolationOptions{Sandbox: sandbox})
	must.OK(t, err)
	return i
}

// isolated runs a test with each kind of isolation. It always skips the kinds that need
// cgroup v2 if there is none, because that can't be installed.
func isolated(t *testing.T, test func(t *testing.T, i local.Isolation)) {
	kinds := []struct {
		name            string
		sandbox, cgroup bool
	}{
		{"sandbox", true, false},
		{"cgroup", false, true},
		{"sandbox and cgroup", true, true},
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			want := local.SandboxOff
			if kind.sandbox {
				want = local.SandboxAuto
			}
			i := machine(t, want)
			if kind.sandbox && i.Bubblewrap == "" {
				must.Skip(t, "%s", i.Sentence())
			}
			if kind.cgroup && i.Cgroup == "" {
				t.Skip(i.Sentence())
			}
			if !kind.cgroup {
				i.Cgroup = ""
			}
			test(t, i)
		})
	}
}

func isolatedExecutor(t *testing.T, i local.Isolation) *local.Executor {
	t.Helper()
	return newExecutorOf(t, local.Options{Program: os.Args[0], StopMargin: 10 * time.Millisecond, Isolation: i})
}

func TestConformanceOfIsolatedTasks(t *testing.T) {
	t.Parallel()
	isolated(t, func(t *testing.T, i local.Isolation) {
		conformance.Suite{Parallel: true, New: func(t *testing.T) app.Executor { return isolatedExecutor(t, i) }}.Run(t)
	})
}

// nameless starts an unmarked orphan in its own session that ignores SIGTERM.
const nameless = `env -i setsid sh -c '(trap "" TERM HUP; echo > out/nameless; while :; do /bin/sleep 1000; done) & exit 0'
while [ ! -e out/nameless ]; do sleep 0.02; done
`

// strays returns the processes whose current directory is below the task's, regardless of
// their environment.
func strays(t *testing.T, a app.Task) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	must.OK(t, err)
	for _, p := range all {
		cwd, err := os.Readlink(filepath.Join(p, "cwd"))
		if err == nil && strings.HasPrefix(cwd, a.Dir) {
			pids = append(pids, filepath.Base(p))
		}
	}
	return pids
}

func TestNoProcessOfATaskEscapes(t *testing.T) {
	t.Parallel()
	isolated(t, func(t *testing.T, i local.Isolation) {
		e := isolatedExecutor(t, i)
		killed, stopped := start(t, e, newTask(t, nameless+stubborn+forever)), start(t, e, newTask(t, nameless+stubborn+`trap "" TERM; `+forever))
		for _, a := range []app.Task{killed, stopped} {
			untilExists(t, output(a, "ready"))
			if n := len(strays(t, a)); n < 4 { // otherwise no process could escape
				t.Fatalf("%d processes run", n)
			}
		}
		must.OK(t, shimOf(t, killed.Handle).Signal(syscall.SIGKILL))
		lost(t, e, killed, "")
		must.OK(t, e.Stop(t.Context(), stopped))
		if o := ended(t, e, stopped, app.CauseStopped); o.Signal != "SIGKILL" {
			t.Errorf("outcome %+v, want stopped by SIGKILL", o)
		}
		for _, a := range []app.Task{killed, stopped} {
			if left := strays(t, a); len(left) > 0 {
				t.Errorf("processes %v remain after the task is over", left)
			}
		}
	})
}

func TestIsolatedTasksLeaveNoCgroup(t *testing.T) {
	i := machine(t, local.SandboxOff)
	if i.Cgroup == "" {
		t.Skip(i.Sentence())
	}
	e := isolatedExecutor(t, i)
	done := start(t, e, newTask(t, "exit 0"))
	over(t, e, done)
	killed := start(t, e, newTask(t, stubborn+forever))
	untilExists(t, output(killed, "ready"))
	must.OK(t, shimOf(t, killed.Handle).Signal(syscall.SIGKILL))
	over(t, e, killed)
	for _, a := range []app.Task{done, killed} {
		if _, err := os.Stat(filepath.Join(i.Cgroup, "molrun-task-"+a.Token)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the cgroup of %s still exists: %v", a.Token, err)
		}
	}
	left := filepath.Join(i.Cgroup, fmt.Sprintf("molrun-task-left-%d", os.Getpid()), "below")
	must.OK(t, os.MkdirAll(left, 0o755))
	living := start(t, e, newTask(t, "echo > out/ready\n"+untilGo))
	untilExists(t, output(living, "ready"))
	must.OK(t, e.CleanUp(t.Context(), t.TempDir(), func() []string { return nil }))
	if _, err := os.Stat(filepath.Dir(left)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("CleanUp did not remove an empty cgroup: %v", err)
	}
	touch(t, output(living, "go"))
	ended(t, e, living, app.CauseDone)
}

func TestRequiredSandboxMustWork(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "bwrap") // simulates a bwrap that is not allowed to create namespaces
	script := "#!/bin/sh\n[ \"$1\" = --help ] || { echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1; }\n"
	must.Program(t, broken, script)
	tests := []struct{ name, path, says string }{
		{"not installed", t.TempDir(), "install the package bubblewrap"},
		{"forbidden", filepath.Dir(broken), "setting up uid map: Permission denied"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("PATH", tt.path)
			o := local.IsolationOptions{Sandbox: local.SandboxRequired}
			if _, err := local.Isolate(t.Context(), o); !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("required: %v, want an error with %q", err, tt.says)
			}
			o.Sandbox = local.SandboxAuto
			i, err := local.Isolate(t.Context(), o)
			if err != nil || i.Bubblewrap != "" || !strings.Contains(i.Sentence(), tt.says) {
				t.Errorf("auto: %q, %v; want none with a reason", i.Sentence(), err)
			}
		})
	}
}

func TestSandboxIsProbed(t *testing.T) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		must.Skip(t, "bwrap is not installed")
	}
	i := machine(t, local.SandboxRequired)
	if i.Kind() == "none" || !regexp.MustCompile("^Each job runs in (a|its own) bubblewrap sandbox").MatchString(i.Sentence()) {
		t.Errorf("isolation %s: %s", i.Kind(), i.Sentence())
	}
	if off := machine(t, local.SandboxOff); off.Bubblewrap != "" || !strings.Contains(off.Sentence(), "runner.sandbox is off") {
		t.Errorf("off: %s", off.Sentence())
	}
}

func TestConfiguredCgroupMustBeACgroup(t *testing.T) {
	o := local.IsolationOptions{Sandbox: local.SandboxOff, Cgroup: t.TempDir()}
	i, err := local.Isolate(t.Context(), o)
	if err != nil || i.Cgroup != "" || !slices.ContainsFunc(i.Missing, func(s string) bool { return strings.Contains(s, "is not a cgroup v2 directory") }) {
		t.Errorf("%+v, %v; want no cgroup, with a reason", i, err)
	}
	if made, err := os.ReadDir(o.Cgroup); len(made) > 0 || err != nil {
		t.Errorf("it created %v in a directory that is no cgroup, %v", made, err)
	}
}

func TestProgramsCanAccessOnlyWhatTheAlgorithmAllows(t *testing.T) {
	i := machine(t, local.SandboxAuto)
	i.Cgroup = ""
	if i.Bubblewrap == "" {
		must.Skip(t, "%s", i.Sentence())
	}
	tools := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(tools, "data"), []byte("listed\n"), 0o600))
	tests := []struct {
		name    string
		sandbox app.Sandbox
		script  string
		err     error
		code    int
	}{
		{"nothing", app.Sandbox{}, "[ ! -e " + tools + " ]", nil, 0},
		{"a folder", app.Sandbox{Read: []string{tools}}, "grep -q listed " + tools + "/data && ! echo > " + tools + "/data", nil, 0},
		{"no network", app.Sandbox{}, "[ $(wc -l < /proc/net/dev) = 3 ]", nil, 0}, // two header lines, and lo
		{"unknown", app.Sandbox{}, "", fault.Unavailable, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := newExecutorOf(t, local.Options{
				Program: os.Args[0], Isolation: i,
				SandboxOf: func(_ context.Context, job app.JobID) (app.Sandbox, error) {
					must.Equal(t, "asked about the job", job, "01J")
					return tt.sandbox, tt.err
				},
			})
			a := newTask(t, tt.script)
			h, err := e.Start(t.Context(), a)
			if !errors.Is(err, tt.err) {
				t.Fatalf("start: %v, want %v", err, tt.err)
			}
			if err != nil {
				return
			}
			a.Handle = h
			if now := over(t, e, a); now.Outcome == nil || now.Outcome.ExitCode != tt.code || now.Outcome.Cause != app.CauseDone {
				log, _ := os.ReadFile(filepath.Join(a.Dir, task.LogFile)) // for the message
				t.Errorf("outcome %+v, want done; log %s", now.Outcome, log)
			}
			if run, err := task.ReadRun(a.Dir); err != nil || run.Isolation != i.Kind() {
				t.Errorf("run.json has %+v, %v; want %s", run, err, i.Kind())
			}
		})
	}
}

// TestMakeRoomIsForUnitsAlone calls DisableControllers outside a systemd unit: the cgroup of this
// test must keep its controllers.
func TestMakeRoomIsForUnitsAlone(t *testing.T) {
	t.Parallel()
	if err := local.DisableControllers(); err == nil || !strings.Contains(err.Error(), "ExecStopPost") && !strings.Contains(err.Error(), "version 2") {
		t.Errorf("outside a unit: %v", err)
	}
}
