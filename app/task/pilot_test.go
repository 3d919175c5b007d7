package task

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"molrun/app/task/process"
	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

// flight is a pilot in a process of its own, and its tasks.
type flight struct {
	*running // its directory is the pilot's
	fed      int
	attr     *syscall.SysProcAttr // of its process
}

// newFlight prepares a pilot with tasks, of which each runs one script.
func newFlight(t *testing.T) *flight {
	t.Helper()
	return &flight{running: &running{attempt: newAttempt(t), done: make(chan error, 1)}}
}

// row makes a task that can be fed to a pilot.
func row(t *testing.T, scripts ...string) *attempt {
	t.Helper()
	a := newAttempt(t, scripts...)
	must.OK(t, WriteSpec(a.dir, a.spec))
	t.Cleanup(func() {
		left, err := process.Marked(a.spec.Token)
		if len(left) > 0 || err != nil {
			t.Errorf("processes %v remain, %v", left, err)
		}
	})
	return a
}

func (f *flight) feed(rows ...*attempt) {
	f.t.Helper()
	var dirs []string
	for _, a := range rows {
		dirs = append(dirs, a.dir)
	}
	f.fed++
	must.OK(f.t, FeedPilot(f.dir, f.fed, dirs))
}

func (f *flight) takeOff(flags ...string) {
	f.t.Helper()
	log, err := os.Create(f.path(PilotLogFile))
	must.OK(f.t, err)
	defer log.Close()
	f.cmd = exec.Command(os.Args[0], append([]string{"task", f.dir, "--pilot", "--isolation", f.isolation.String()}, flags...)...)
	f.cmd.Stdout, f.cmd.Stderr, f.cmd.SysProcAttr = log, log, f.attr
	must.OK(f.t, f.cmd.Start())
	go func() { f.done <- f.cmd.Wait() }()
	f.t.Cleanup(func() { f.cmd.Process.Kill() })
}

// land closes the pilot and waits until it has ended.
func (f *flight) land() {
	f.t.Helper()
	must.OK(f.t, ClosePilot(f.dir))
	if code := f.wait(); code != 0 {
		f.t.Fatalf("the pilot exited with %d: %s", code, f.read(PilotLogFile))
	}
	if locked, err := Locked(f.dir); locked || err != nil {
		f.t.Errorf("after the end locked = %v, %v", locked, err)
	}
}

// ended returns the outcome of a task.
func (a *attempt) ended() *protocol.Outcome {
	a.t.Helper()
	o, err := ReadOutcome(a.dir)
	must.OK(a.t, err)
	return o
}

func inEachFlight(t *testing.T, test func(*testing.T, *flight)) {
	for name, flags := range map[string]string{"plain": "", "sandbox": "bwrap"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFlight(t)
			if flags != "" {
				needs(t, "bwrap", "--version")
				f.isolation.Bubblewrap, _ = exec.LookPath("bwrap")
			}
			test(t, f)
		})
	}
}

// Each task of a pilot ends as it would alone: the failure, the time limit, the memory and
// the left processes of one are nothing to the next.
func TestPilotRunsEachTaskAsIfAlone(t *testing.T) {
	inEachFlight(t, func(t *testing.T, f *flight) {
		first := row(t, `echo first; sleep 60 & echo $HOME >out/home`)
		fails := row(t, `echo to the log; exit 3`)
		crashes := row(t, `kill -SEGV $$`)
		slow := row(t, `sleep 60`)
		slow.spec.MaxRuntimeSeconds = 1
		must.OK(t, WriteSpec(slow.dir, slow.spec))
		broken := row(t, `true`)
		must.OK(t, os.WriteFile(broken.path(SpecFile), []byte("{"), 0o600))
		large := row(t, ``)
		large.spec.Steps[0].Argv = []string{os.Args[0], "use", "200"}
		large.spec.Env = map[string]string{"GOGC": "off"}
		must.OK(t, WriteSpec(large.dir, large.spec))
		small := row(t, `echo small`, `echo second step`)
		f.feed(first, fails, crashes, slow)
		f.takeOff()
		first.untilFile(OutcomeFile)
		f.feed(broken, large, small) // while it runs
		f.land()

		for _, tt := range []struct {
			name  string
			a     *attempt
			cause protocol.Cause
		}{
			{"first", first, protocol.CauseDone},
			{"fails", fails, protocol.CauseExit},
			{"crashes", crashes, protocol.CauseSignal},
			{"slow", slow, protocol.CauseTimeout},
			{"broken", broken, protocol.CauseCannotStart},
			{"large", large, protocol.CauseDone},
			{"small", small, protocol.CauseDone},
		} {
			o := tt.a.ended()
			if o.Cause != tt.cause || o.EndedAt.Before(o.StartedAt) || o.StartedAt.IsZero() || o.Unsynced != "" {
				t.Errorf("%s: %+v, want %s", tt.name, o, tt.cause)
			}
			if tt.a != broken {
				if run, err := ReadRun(tt.a.dir); err != nil || run.Token != tt.a.spec.Token {
					t.Errorf("%s: %+v, %v", tt.name, run, err)
				}
			}
		}
		if o := large.ended(); o.CPUSeconds < 0.25 || o.MaxRSSBytes < 200<<20 {
			t.Errorf("the large one used %v s and %d bytes", o.CPUSeconds, o.MaxRSSBytes)
		}
		if o := small.ended(); o.CPUSeconds > 0.2 || o.MaxRSSBytes > 150<<20 {
			t.Errorf("the small one behind it used %v s and %d bytes", o.CPUSeconds, o.MaxRSSBytes)
		}
		must.Equal(t, "log", small.read(LogFile), "small\nsecond step\n")
		must.Equal(t, "log", fails.read(LogFile), "to the log\n")
		if got := first.read(WorkDir, OutDir, "home"); strings.TrimSpace(got) != first.path(WorkDir) {
			t.Errorf("HOME %q, want %q", got, first.path(WorkDir))
		}
	})
}

// What is stopped ends, wherever it stands, and nothing else does.
func TestPilotStopsOneTask(t *testing.T) {
	inEachFlight(t, func(t *testing.T, f *flight) {
		runs := row(t, `sleep 60`)
		waits := row(t, `echo never`)
		goes := row(t, `while [ ! -e out/go ]; do sleep 0.02; done`)
		f.feed(runs, waits, goes)
		f.takeOff()
		runs.untilFile(RunFile)
		_, err := RequestStop(waits.dir)
		must.OK(t, err)
		waits.untilFile(OutcomeFile) // though another one runs
		if runs.has(OutcomeFile) {
			t.Error("the task before it has ended")
		}
		_, err = RequestStop(runs.dir)
		must.OK(t, err)
		goes.untilFile(RunFile)
		goes.release()
		f.land()
		for _, a := range []*attempt{runs, waits} {
			if o := a.ended(); o.Cause != protocol.CauseStopped {
				t.Errorf("stopped: %+v", o)
			}
		}
		if o := goes.ended(); o.Cause != protocol.CauseDone || waits.has(RunFile) {
			t.Errorf("the neighbour: %+v; the one that was stopped first began: %v", o, waits.has(RunFile))
		}
	})
}

// A machine that shuts down interrupts one task and lets no other begin, also while the task
// ends that was stopped before.
func TestPilotEndsWithTheMachine(t *testing.T) {
	for stopped, want := range map[bool]protocol.Cause{false: protocol.CauseInterrupted, true: protocol.CauseStopped} {
		inEachFlight(t, func(t *testing.T, f *flight) {
			runs := row(t, `trap 'echo > out/asked; while [ ! -e out/go ]; do sleep 0.02; done; exit' TERM; echo > out/ready; while true; do sleep 0.02; done`)
			waits := row(t, `sleep 60`)
			f.feed(runs, waits)
			f.takeOff()
			runs.untilFile(WorkDir, OutDir, "ready")
			if stopped {
				_, err := RequestStop(runs.dir)
				must.OK(t, err)
				runs.untilFile(WorkDir, OutDir, "asked")
			}
			f.signal(syscall.SIGTERM)
			runs.release()
			f.wait()
			if o := runs.ended(); o.Cause != want {
				t.Errorf("stopped before: %v: %+v, want %s", stopped, o, want)
			}
			// A signal that arrives when the task has just ended interrupts the next one.
			if waits.has(RunFile) && waits.ended().Cause != protocol.CauseInterrupted {
				t.Errorf("stopped before: %v: the next task began, and ended with %+v", stopped, waits.ended())
			}
		})
	}
}

// A pilot that is killed takes its running program along, and another one runs what
// had not begun and nothing else.
func TestNextPilotRunsWhatHadNotBegun(t *testing.T) {
	inEachFlight(t, func(t *testing.T, f *flight) {
		ended, runs, waits := row(t, `echo x >>out/count`), row(t, `echo x >>out/count; >out/counted; sleep 60`), row(t, `echo x >>out/count`)
		f.feed(ended, runs, waits)
		f.takeOff()
		runs.untilFile(WorkDir, OutDir, "counted")
		must.OK(t, f.cmd.Process.Kill())
		f.wait()
		must.OK(t, process.KillMarked(t.Context(), runs.spec.Token)) // as executors do
		if runs.has(OutcomeFile) || waits.has(RunFile) {
			t.Fatal("a killed pilot wrote an outcome, or began another task")
		}
		f.done = make(chan error, 1)
		f.takeOff() // it finds the portion of the one before it
		waits.untilFile(OutcomeFile)
		f.land()
		for _, a := range []*attempt{ended, runs, waits} {
			if got := a.read(WorkDir, OutDir, "count"); got != "x\n" {
				t.Errorf("a task ran %d times", strings.Count(got, "x"))
			}
		}
		if runs.has(OutcomeFile) {
			t.Error("the lost task has an outcome")
		}
	})
}

func TestOnlyOnePilotPerDirectory(t *testing.T) {
	t.Parallel()
	f := newFlight(t)
	a := row(t, `while [ ! -e out/go ]; do sleep 0.02; done`)
	f.feed(a)
	f.takeOff()
	a.untilFile(RunFile)
	second := exec.Command(os.Args[0], "task", f.dir, "--pilot")
	if err := second.Run(); err == nil || second.ProcessState.ExitCode() != ExitRefused {
		t.Errorf("the second pilot: %v", err)
	}
	a.release()
	f.land()
}

// An outcome that was not made durable says during which boot it was written.
func TestUnsyncedPilotNamesTheBoot(t *testing.T) {
	t.Parallel()
	f := newFlight(t)
	a := row(t, `echo x >out/x`)
	f.feed(a)
	f.takeOff("--unsynced")
	f.land()
	boot, err := process.BootID()
	must.OK(t, err)
	if o := a.ended(); o.Unsynced != boot || o.Cause != protocol.CauseDone {
		t.Errorf("%+v, want boot %s", o, boot)
	}
}

// What is wrong with one task's directory, or with a portion, is nothing to the others.
func TestPilotSkipsWhatItCannotRun(t *testing.T) {
	t.Parallel()
	f := newFlight(t)
	gone, good := row(t, `true`), row(t, `true`)
	must.OK(t, os.RemoveAll(gone.dir))
	f.feed(gone, good)
	must.OK(t, os.WriteFile(f.path("rows.2"), []byte("{"), 0o600))
	f.fed++
	last := row(t, `true`)
	f.feed(last, good) // the second time is once too often
	f.takeOff()
	f.land()
	for _, a := range []*attempt{good, last} {
		if o := a.ended(); o.Cause != protocol.CauseDone {
			t.Errorf("%+v", o)
		}
	}
}

// No task begins in a pilot that is stopped, though no signal has come yet.
func TestStoppedPilotBeginsNothing(t *testing.T) {
	t.Parallel()
	f := newFlight(t)
	a := row(t, `true`)
	f.feed(a)
	_, err := RequestStop(f.dir)
	must.OK(t, err)
	f.takeOff()
	f.land()
	if Exists(a.dir, RunFile) || Exists(a.dir, OutcomeFile) {
		t.Error("a task has begun")
	}
}

// What a pilot returns while a task runs never begins there, also if it is given later.
func TestPilotReturnsWhatHasNotBegun(t *testing.T) {
	inEachFlight(t, func(t *testing.T, f *flight) {
		runs, waits, late := row(t, `while [ ! -e out/go ]; do sleep 0.02; done`), row(t, `true`), row(t, `true`)
		f.feed(runs, waits)
		f.takeOff()
		runs.untilFile(RunFile)
		if Returned(f.dir) {
			t.Error("it returned rows that nobody asked for")
		}
		must.OK(t, AskReturn(f.dir))
		must.Become(t, "the pilot to return them", func() bool { return Returned(f.dir) })
		f.feed(late)
		runs.release()
		must.Equal(t, "exit code", f.wait(), 0)
		if o := runs.ended(); o.Cause != protocol.CauseDone {
			t.Errorf("the one that ran: %+v", o)
		}
		for _, a := range []*attempt{waits, late} {
			if a.has(RunFile) || a.has(OutcomeFile) {
				t.Error("a task began that had been returned")
			}
		}
	})
}

func TestClearPilotLeavesNothingToRun(t *testing.T) {
	t.Parallel()
	f := newFlight(t)
	old := row(t, `true`)
	f.feed(old)
	must.OK(t, ClosePilot(f.dir))
	must.OK(t, ClearPilot(f.dir))
	f.fed = 0
	next := row(t, `true`)
	f.feed(next)
	f.takeOff()
	next.untilFile(OutcomeFile)
	f.land()
	if old.has(RunFile) {
		t.Error("a task of the pilot before was run")
	}
	if err := FeedPilot(filepath.Join(f.dir, "missing"), 1, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("feeding no pilot: %v", err)
	}
}
