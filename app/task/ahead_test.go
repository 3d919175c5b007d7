package task

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"molrun/app/protocol"
	"molrun/app/task/process"
)

// inSandboxes prepares a pilot whose rows have sandboxes.
func inSandboxes(t *testing.T) *flight {
	t.Helper()
	t.Parallel()
	needs(t, "bwrap", "--version")
	f := newFlight(t)
	f.isolation.Bubblewrap, _ = exec.LookPath("bwrap")
	return f
}

// marked returns the row's processes.
func (a *attempt) marked() []int {
	a.t.Helper()
	pids, err := process.Marked(a.spec.Token)
	must(a.t, err)
	return pids
}

// untilMade waits until the row has a sandbox: bwrap, and the first process in it.
func (a *attempt) untilMade() {
	a.t.Helper()
	until(a.t, "a sandbox is made ahead", func() bool { return len(a.marked()) == 2 })
}

// notBegun checks that no file says that the row has begun.
func (a *attempt) notBegun() {
	a.t.Helper()
	for _, name := range []string{RunFile, SandboxFile, LogFile, ProgressFile} {
		if a.has(name) {
			a.t.Errorf("%s exists before the row's turn", name)
		}
	}
}

const waitsToGo = `while [ ! -e out/go ]; do sleep 0.02; done`

// While a row runs, the next ones have sandboxes, in which nothing of them has begun. In its
// turn each runs in its own, once.
func TestRowsHaveSandboxesMadeAhead(t *testing.T) {
	f := inSandboxes(t)
	f.isolation.Processes = 6 // which the sandboxes of others are not counted for
	runs := row(t, waitsToGo)
	var next []*attempt
	for range mostAhead {
		next = append(next, row(t, `echo x >>out/count; exit 3`))
	}
	f.feed(append([]*attempt{runs}, next...)...)
	f.takeOff()
	for _, a := range next[:mostAhead-1] {
		a.untilMade()
	}
	if pids := next[mostAhead-1].marked(); len(pids) > 0 {
		t.Errorf("more than %d rows have sandboxes", mostAhead)
	}
	for _, a := range next {
		a.notBegun()
	}
	made := next[0].marked()
	runs.release()
	f.land()
	if o := runs.ended(); o.Cause != protocol.CauseDone {
		t.Errorf("the first: %+v", o)
	}
	for _, a := range next {
		if o := a.ended(); o.Cause != protocol.CauseExit || o.ExitCode != 3 || a.read(WorkDir, OutDir, "count") != "x\n" {
			t.Errorf("%+v, having written %q", o, a.read(WorkDir, OutDir, "count"))
		}
	}
	first, err := read[sandboxRecord](next[0].dir, SandboxFile)
	must(t, err)
	if first.PID != made[0] && first.PID != made[1] {
		t.Errorf("its sandbox is %d, and not the one made ahead: %v", first.PID, made)
	}
}

// A row that is stopped before its turn, or given back, loses its sandbox first. So it does
// when the machine ends, and when the pilot is killed. It has not begun.
func TestSandboxMadeAheadEndsWithoutItsRow(t *testing.T) {
	for name, ends := range map[string]func(f *flight, next *attempt){
		"stopped": func(_ *flight, next *attempt) {
			_, err := RequestStop(next.dir)
			must(t, err)
			next.untilFile(OutcomeFile)
		},
		"returned": func(f *flight, _ *attempt) {
			must(t, AskReturn(f.dir))
			until(t, "the pilot to return it", func() bool { return Returned(f.dir) })
		},
		"machine": func(f *flight, _ *attempt) { f.signal(syscall.SIGTERM); f.wait() },
		"killed": func(f *flight, next *attempt) {
			must(t, f.cmd.Process.Kill())
			f.wait()
			until(t, "the sandbox dies with its pilot", func() bool { return len(next.marked()) == 0 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := inSandboxes(t)
			runs, next := row(t, waitsToGo), row(t, `echo x >out/began`)
			f.feed(runs, next)
			f.takeOff()
			next.untilMade()
			runs.untilFile(RunFile)
			ends(f, next)
			if left := next.marked(); len(left) > 0 {
				t.Errorf("its processes %v are left", left)
			}
			next.notBegun()
			if next.has(WorkDir, OutDir, "began") {
				t.Error("the row began")
			}
			if name != "stopped" && name != "returned" {
				return
			}
			runs.release()
			must(t, ClosePilot(f.dir))
			if f.wait(); runs.ended().Cause != protocol.CauseDone {
				t.Errorf("the row before it: %+v", runs.ended())
			}
		})
	}
}

// What kills the processes of one row, or those of a sandbox made ahead, costs no other row.
func TestKilledSandboxIsMadeAnew(t *testing.T) {
	f := inSandboxes(t)
	large := row(t, ``)
	large.spec.Steps[0].Argv = []string{os.Args[0], "use", "200", "wait"}
	large.spec.MemoryBytes = 100 << 20
	large.spec.Env = map[string]string{"GOGC": "off"}
	must(t, Write(large.dir, large.spec))
	waits, next, last := row(t, waitsToGo), row(t, `echo x >>out/count`), row(t, `echo x >>out/count`)
	f.feed(large, waits, next, last)
	f.takeOff()
	waits.untilFile(RunFile)
	if o := large.ended(); o.Cause != protocol.CauseMemory {
		t.Errorf("the first: %+v", o)
	}
	next.untilMade()
	must(t, process.KillMarked(t.Context(), next.spec.Token))
	waits.release()
	f.land()
	for _, a := range []*attempt{waits, next, last} {
		if o := a.ended(); o.Cause != protocol.CauseDone || a != waits && a.read(WorkDir, OutDir, "count") != "x\n" {
			t.Errorf("%+v", o)
		}
	}
	if text := f.read(PilotLogFile); text != "" {
		t.Errorf("the pilot says: %s", text)
	}
}

// A hostile program reaches nothing from a sandbox that was made ahead, and nothing of one
// that is made meanwhile: that is as much outside as anything.
func TestHostileProgramInASandboxMadeAhead(t *testing.T) {
	x := targets(t)
	f := inSandboxes(t)
	f.isolation.Hide = []string{x.folder}
	f.isolation.Sandbox.Read = []string{filepath.Dir(os.Args[0]), filepath.Dir(x.setuid)}
	before, hostile, next := row(t, waitsToGo), row(t, ""), row(t, `echo x >out/secret`)
	hostile.spec.Steps[0].Argv = []string{"sh", "-c", `ls "$1" && echo did see the next; while [ ! -e out/words ]; do sleep 0.02; done; exec "$0" $(cat out/words)`, os.Args[0], next.dir}
	must(t, Write(hostile.dir, hostile.spec))
	f.feed(before, hostile, next)
	f.takeOff()
	hostile.untilMade()
	next.untilMade()
	before.release()
	x.task, x.victim = f.cmd.Process.Pid, next.marked()[1]
	words := hostile.path(WorkDir, OutDir, "words")
	must(t, os.WriteFile(words+"~", []byte(strings.Join(x.words(), " ")), 0o644))
	must(t, os.Rename(words+"~", words))
	f.land()
	if o := hostile.ended(); o.Cause != protocol.CauseDone {
		t.Errorf("outcome %+v", o)
	}
	did, found := strings.CutSuffix(hostile.read(LogFile), "tried everything\n")
	if !found || strings.Contains(did, "did ") {
		t.Errorf("in the sandbox the program %s", did)
	}
	if o := next.ended(); o.Cause != protocol.CauseDone {
		t.Errorf("the next: %+v", o)
	}
}
