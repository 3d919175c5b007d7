package task

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

func TestStdoutGoesToTheStepsFile(t *testing.T) {
	a := newAttempt(t, "echo result; echo remark >&2", "echo more")
	a.spec.Steps[0].Stdout = a.path(WorkDir, "out", "deep", "result.txt")
	a.spec.Steps[1].Stdout = "out/more.txt"
	a.start().ends(protocol.CauseDone)
	got := []string{a.read(WorkDir, "out", "deep", "result.txt"), a.read(WorkDir, "out", "more.txt"), a.read(LogFile)}
	must.Equal(t, "files", []string{"result\n", "more\n", "remark\n"}, got)
}

func TestStdoutStaysBelowTheWorkDirectory(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	tests := []struct{ name, prepare, stdout string }{
		{"up", "true", "../escaped"},
		{"absolute", "true", filepath.Join(outside, "escaped")},
		{"link", "ln -s " + outside + " out/link", "out/link/escaped"},
		{"link to a file", "ln -s " + filepath.Join(outside, "escaped") + " out/link", "out/link"},
		{"pipe", "mkfifo out/pipe", "out/pipe"},
		{"directory", "true", "out"},
		{"itself", "true", "."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAttempt(t, tt.prepare, "echo escaped")
			a.spec.Steps[1].Stdout = tt.stdout
			o := a.start().outcome()
			if o.Cause != protocol.CauseCannotStart || !strings.Contains(o.Message, "output file") {
				t.Errorf("outcome %+v, want the output file rejected", o)
			}
			for _, path := range []string{filepath.Join(outside, "escaped"), a.path("escaped")} {
				if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s exists: %v", path, err)
				}
			}
		})
	}
}

// environmentOf returns the environment of a program of the task.
func environmentOf(t *testing.T, a *attempt) []string {
	t.Helper()
	a.spec.Steps = []protocol.Step{{Argv: []string{"env"}, Stdout: "out/env"}}
	a.start().ends(protocol.CauseDone)
	lines := strings.Split(strings.TrimSpace(a.read(WorkDir, "out", "env")), "\n")
	slices.Sort(lines)
	return lines
}

func TestProgramsSeeOnlyTheirOwnEnvironment(t *testing.T) {
	a := newAttempt(t)
	a.env = []string{
		"PATH=" + os.Getenv("PATH"), "LD_LIBRARY_PATH=/opt/lib", "LANG=C.UTF-8", "LC_ALL=C", "TZ=UTC",
		"MOLRUN_SECRET=hidden", "AWS_SECRET_ACCESS_KEY=hidden", "HOME=/root", "MOLRUN_TASK=another",
	}
	a.spec.CPUs = 3
	a.spec.Env = map[string]string{
		"OMP_NUM_THREADS": "2", "TZ": "Europe/Berlin",
		"MOLRUN_TASK": "forged", "CUDA_VISIBLE_DEVICES": "0,1,2,3",
	}
	want := []string{
		"CUDA_VISIBLE_DEVICES=", "HOME=" + a.path(WorkDir), "LANG=C.UTF-8", "LC_ALL=C", "LD_LIBRARY_PATH=/opt/lib",
		"MKL_NUM_THREADS=3", "MOLRUN_CPUS=3", "MOLRUN_TASK=" + a.spec.Token, "NVIDIA_VISIBLE_DEVICES=void", "OMP_NUM_THREADS=2", "OPENBLAS_NUM_THREADS=3", "PATH=" + os.Getenv("PATH"), "PYTHONUNBUFFERED=1",
		"TMPDIR=" + a.path(WorkDir, "tmp"), "TZ=Europe/Berlin",
	}
	must.Equal(t, "the environment", environmentOf(t, a), want)
}

func TestProgramsSeeTheirGPUs(t *testing.T) {
	tests := []struct {
		name   string
		leased []string
		env    string // of the shim
		want   string
	}{
		{"none", nil, "", ""},
		{"leased", []string{"GPU-a", "GPU-b"}, "", "GPU-a,GPU-b"},
		{"granted by a cluster", nil, "CUDA_VISIBLE_DEVICES=2", "2"},
		{"leased wins", []string{"GPU-a"}, "CUDA_VISIBLE_DEVICES=2", "GPU-a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAttempt(t)
			a.env = []string{"PATH=" + os.Getenv("PATH"), tt.env}
			a.spec.GPUs = tt.leased
			got := environmentOf(t, a)
			for _, entry := range []string{"CUDA_VISIBLE_DEVICES=" + tt.want, "NVIDIA_VISIBLE_DEVICES=" + cmp.Or(tt.want, "void")} {
				if !slices.Contains(got, entry) {
					t.Errorf("environment %q, want %s", got, entry)
				}
			}
		})
	}
}

func TestProgramsSeeHowLongTheyMayRun(t *testing.T) {
	a := newAttempt(t)
	a.spec.MaxRuntimeSeconds = 5000
	a.spec.Env = map[string]string{secondsVariable: "forged"}
	var left int
	for _, entry := range environmentOf(t, a) {
		if text, ok := strings.CutPrefix(entry, secondsVariable+"="); ok {
			left, _ = strconv.Atoi(text)
		}
	}
	if left < 1 || left > 5000 {
		t.Errorf("%d seconds remain, want at most 5000", left)
	}
}

func TestProgramsStartInACleanState(t *testing.T) {
	a := newAttempt(t, `
		echo umask $(umask)
		echo core $(ulimit -c)
		echo dir $(pwd)
		echo input $(wc -c)
		echo leader $(cut -d' ' -f6 /proc/$$/stat) $$
		kill -HUP $$; echo survived`)
	o := a.start().outcome()
	if o.Signal != "SIGHUP" {
		t.Errorf("outcome %+v, want the default action of SIGHUP", o)
	}
	lines := strings.Split(strings.TrimSpace(a.read(LogFile)), "\n")
	var sid, pid int
	if _, err := fmt.Sscanf(lines[len(lines)-1], "leader %d %d", &sid, &pid); err != nil || sid != pid {
		t.Errorf("%q: the program is not a session leader", lines[len(lines)-1])
	}
	want := []string{"umask 0077", "core 0", "dir " + a.path(WorkDir), "input 0"}
	must.Equal(t, "the state", lines[:len(lines)-1], want)
}

// The shim, bwrap and the first process in the sandbox do not pass on their descriptors.
func TestProgramsInheritNoFiles(t *testing.T) {
	withAndWithoutSandbox(t, "ls /proc/$$/fd; true", func(t *testing.T, a *attempt) {
		r, w, err := os.Pipe()
		must.OK(t, err)
		defer r.Close()
		defer w.Close()
		a.files = []*os.File{r, w}
		a.start().outcome()
		must.Equal(t, "the program has the descriptors", strings.Fields(a.read(LogFile)), []string{"0", "1", "2"})
	})
}

// A step that runs molrun itself runs the file that runs the task, even if another
// version or no file is installed there.
func TestStepsRunTheFileThatRunsTheTask(t *testing.T) {
	t.Parallel()
	inEach(t, map[string]makeAttempt{"plain": newAttempt, "sandboxed": sandboxed}, func(t *testing.T, make makeAttempt) {
		a := make(t, "while [ ! -e out/go ]; do sleep 0.02; done")
		installed := filepath.Join(t.TempDir(), "molrun")
		a.spec.Program = installed
		a.spec.Steps = append(a.spec.Steps,
			protocol.Step{Argv: []string{installed, "use", "1"}, Stdout: a.path(WorkDir, OutDir, "own")})
		r := a.start()
		must.OK(t, os.WriteFile(installed, []byte("#!/bin/false\n"), 0o700))
		a.release()
		if o := r.outcome(); o.Cause != protocol.CauseDone || a.read(WorkDir, OutDir, "own") != "1\n" {
			t.Errorf("outcome %+v, output %q; want that of this program", o, a.read(WorkDir, OutDir, "own"))
		}
	})
}
