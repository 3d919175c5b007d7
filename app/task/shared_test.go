package task

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"molrun/app/task/process"
	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

// sharedFlight prepares a worker whose tasks share a sandbox.
func sharedFlight(t *testing.T) *flight {
	t.Helper()
	t.Parallel()
	f := newFlight(t)
	f.isolation = sandboxed(t).isolation
	return f
}

// done checks that tasks have succeeded.
func done(t *testing.T, rows ...*attempt) {
	t.Helper()
	for _, a := range rows {
		if o := a.ended(); o.Cause != protocol.CauseDone {
			t.Errorf("%+v; log %s", o, a.read(LogFile))
		}
	}
}

const waitsToGo = `while [ ! -e out/go ]; do sleep 0.02; done`

// A task finds no traces of other tasks in the same sandbox, running or completed.
func TestTasksInOneSandboxFindNothingOfEachOther(t *testing.T) {
	f := sharedFlight(t)
	first := row(t, leavesTraces)
	sees := row(t, `echo "files $(ls -A /tmp /var/tmp/ /dev/shm in | grep -c trace)"
echo "segments $(tail -n +2 /proc/sysvipc/shm | wc -l) $(tail -n +2 /proc/sysvipc/msg | wc -l)"
echo "processes $(cat /proc/[0-9]*/comm | grep -c sleep)"
echo "tasks $(ls "$(dirname "$(dirname "$PWD")")" | wc -l)"
ls "$(dirname "$PWD")"; cat /proc/self/mountinfo >out/mounts
written=0; for at in "$(dirname "$PWD")" "$(dirname "$(dirname "$PWD")")" / /run /dev /etc in; do touch "$at/x" 2>/dev/null && written=$((written+1)); done; echo "written $written"
grep -h '^Cap\|^NoNewPrivs' /proc/self/status | sort -u
df --output=size -k /dev/shm | tail -1 | tr -d " "; grep Cpus_allowed_list /proc/self/status`)
	cpus, err := process.AllowedCPUs()
	must.OK(t, err)
	first.spec.CPUSet, sees.spec.CPUSet = cpus[:1], cpus[len(cpus)-1:]
	sees.spec.MemoryBytes = 64 << 20
	for _, a := range []*attempt{first, sees} {
		must.OK(t, WriteSpec(a.dir, a.spec))
	}
	last := row(t, waitsToGo)
	f.feed(first, sees, last)
	f.start()
	last.untilFile(RunFile)
	last.release()
	f.finish()
	done(t, first, sees, last)
	if firstOf(t, first) != firstOf(t, sees) || firstOf(t, sees) != firstOf(t, last) {
		t.Fatal("the tasks did not share a sandbox")
	}
	const none = "\t0000000000000000\n"
	want := "files 0\nsegments 0 0\nprocesses 0\ntasks 1\nwork\nwritten 0\nCapAmb:" + none + "CapBnd:" + none + "CapEff:" + none + "CapInh:" + none + "CapPrm:" + none + "NoNewPrivs:\t1\n" +
		fmt.Sprintf("%d\nCpus_allowed_list:\t%d\n", 64<<10, sees.spec.CPUSet[0])
	must.Equal(t, "the task sees", sees.read(LogFile), want)
	if got := sees.read(WorkDir, OutDir, "mounts"); strings.Contains(got, first.path(WorkDir)+" ") || !strings.Contains(got, sees.path(WorkDir)+" ") {
		t.Errorf("mounts\n%s", got)
	}
}

// Killing a task affects no other task; if the sandbox dies too, the next task gets a new
// one.
func TestKilledSandboxIsMadeAnew(t *testing.T) {
	f := sharedFlight(t)
	f.isolation.Sandbox.Read = []string{filepath.Dir(os.Args[0])}
	before, large, next := row(t, ""), row(t, ""), row(t, "")
	for _, a := range []*attempt{before, large, next} {
		a.spec.Steps[0].Argv = []string{os.Args[0], "use", "1"}
	}
	large.spec.Steps[0].Argv = []string{os.Args[0], "use", "200", "wait"}
	large.spec.MemoryBytes, next.spec.MemoryBytes, before.spec.MemoryBytes = 100<<20, 100<<20, 100<<20
	for _, a := range []*attempt{before, large, next} {
		a.spec.Env = map[string]string{"GOGC": "off"}
		must.OK(t, WriteSpec(a.dir, a.spec))
	}
	waits, last := row(t, `echo began; `+waitsToGo), row(t, `echo x >>out/count`)
	f.feed(before, large, next, waits, last)
	f.start()
	// Once the log has output, the task has registered the start of the program.
	must.Become(t, "the program's words are in the log", func() bool { return waits.has(LogFile) && waits.read(LogFile) != "" })
	killed := firstOf(t, waits)
	must.OK(t, killed.Signal(syscall.SIGKILL))
	f.finish()
	done(t, before, next, last)
	if o := large.ended(); o.Cause != protocol.CauseMemory || o.CPUSeconds < 0.25 || o.CPUSeconds > before.ended().CPUSeconds+0.6 {
		t.Errorf("the one that took too much: %+v", o)
	}
	if o := waits.ended(); o.Cause != protocol.CauseSignal || o.Signal != "SIGKILL" {
		t.Errorf("the one that was killed with its sandbox: %+v", o)
	}
	if firstOf(t, before) != killed || firstOf(t, large) != killed || firstOf(t, next) != killed || firstOf(t, last) == killed {
		t.Error("a killed sandbox was kept, or a live one was not")
	}
	// Each used 0.3 s and its startup time; the sandboxes that ended in between count for
	// neither.
	for _, a := range []*attempt{before, next} {
		if used := a.ended().CPUSeconds; used < 0.25 || used > 0.8 {
			t.Errorf("%v s of CPU", used)
		}
	}
	if used := last.ended().CPUSeconds; used > 0.25 {
		t.Errorf("the last used %v s of CPU", used)
	}
	must.Equal(t, "the worker", f.read(WorkerLogFile), "")
}

// The sandbox dies with its worker, even if no task has started in it.
func TestSharedSandboxDiesWithItsWorker(t *testing.T) {
	f := sharedFlight(t)
	first, second := row(t, "true"), row(t, `touch out/began; `+waitsToGo)
	f.feed(first, second)
	f.start()
	second.untilFile(WorkDir, OutDir, "began")
	box := firstOf(t, second)
	must.OK(t, f.cmd.Process.Kill())
	f.wait()
	must.Become(t, "the sandbox dies", box.Ended)
	must.OK(t, process.KillMarked(t.Context(), second.spec.Token))
	must.Become(t, "the program dies", func() bool { left, err := process.Marked(second.spec.Token); return err == nil && len(left) == 0 })
}

// A task that can't use the sandbox of the others gets a separate one.
func TestIncompatibleTaskGetsSeparateSandbox(t *testing.T) {
	outside := t.TempDir()
	for name, unfit := range map[string]func(f *flight, odd *attempt){
		"what is read holds all tasks": func(f *flight, odd *attempt) {
			f.isolation.Sandbox.Read = []string{filepath.Dir(odd.dir)}
		},
		"what is read is below": func(f *flight, odd *attempt) {
			f.isolation.Sandbox.Read = []string{odd.path("beside")}
			must.OK(f.t, os.Mkdir(odd.path("beside"), 0o755))
		},
		"no first process can be found": func(f *flight, _ *attempt) {
			script := filepath.Join(outside, "bwrap")
			real, err := exec.LookPath("bwrap")
			must.OK(f.t, err)
			must.OK(f.t, os.WriteFile(script, []byte("#!/bin/sh\ncase \"$*\" in *CAP_SYS_ADMIN*) echo refused >&2; exit 1;; esac\nexec "+real+" \"$@\"\n"), 0o755))
			f.isolation.Bubblewrap = script
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := sharedFlight(t)
			first, second := row(t, "echo x >>out/count"), row(t, "echo x >>out/count; ls /tmp | wc -l >out/files")
			unfit(f, second)
			f.feed(first, second)
			f.start()
			f.finish()
			done(t, first, second)
			if name != "what is read holds all tasks" && firstOf(t, first) == firstOf(t, second) {
				t.Error("the tasks shared a sandbox")
			}
			for _, a := range []*attempt{first, second} {
				must.Equal(t, "it ran", a.read(WorkDir, OutDir, "count"), "x\n")
			}
		})
	}
}

// A program in a shared sandbox is in the cgroup of its task, and the sandbox is in none.
func TestProgramInASharedSandboxIsInItsCgroup(t *testing.T) {
	f := sharedFlight(t)
	f.isolation.Cgroup = cgroupParent(t)
	// The worker is in a cgroup next to those of tasks, like a service.
	beside := filepath.Join(f.isolation.Cgroup, "service")
	must.OK(t, os.Mkdir(beside, 0o755))
	t.Cleanup(func() { syscall.Rmdir(beside) })
	dir, err := os.Open(beside)
	must.OK(t, err)
	defer dir.Close()
	f.attr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	first, second := row(t, waitsToGo), row(t, `kill -9 $$`)
	f.feed(first, second)
	f.start()
	first.untilFile(SandboxFile)
	procs := filepath.Join(f.isolation.Cgroup, "molrun-task-"+first.spec.Token, "cgroup.procs")
	must.Become(t, "the program is in the cgroup", func() bool {
		text, err := os.ReadFile(procs)
		return err == nil && len(strings.Fields(string(text))) > 0
	})
	text, err := os.ReadFile(procs)
	must.OK(t, err)
	box := firstOf(t, first)
	if slices.Contains(strings.Fields(string(text)), strconv.Itoa(box.PID)) {
		t.Error("the sandbox itself is in the task's cgroup")
	}
	first.release()
	f.finish()
	done(t, first)
	if o := second.ended(); o.Cause != protocol.CauseSignal || firstOf(t, second) != box || o.Isolation != "bubblewrap+cgroup" {
		t.Errorf("the second: %+v", o)
	}
	left, err := filepath.Glob(filepath.Join(f.isolation.Cgroup, "molrun-task-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("leftover cgroups: %v, %v", left, err)
	}
}
