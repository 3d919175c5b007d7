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

// flight is a worker in its own process, and its tasks.
type flight struct {
	*running // its directory is that of the worker
	fed      int
	attr     *syscall.SysProcAttr // of its process
}

// newFlight prepares a worker whose tasks run one script each.
func newFlight(t *testing.T) *flight {
	t.Helper()
	return &flight{running: &running{attempt: newAttempt(t), done: make(chan error, 1)}}
}

// row makes a task for a worker.
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
	must.OK(f.t, AssignTasks(f.dir, f.fed, dirs))
}

func (f *flight) start(flags ...string) {
	f.t.Helper()
	log, err := os.Create(f.path(WorkerLogFile))
	must.OK(f.t, err)
	defer log.Close()
	f.cmd = exec.Command(os.Args[0], append([]string{"task", f.dir, "--worker", "--isolation", f.isolation.String()}, flags...)...)
	f.cmd.Stdout, f.cmd.Stderr, f.cmd.SysProcAttr = log, log, f.attr
	must.OK(f.t, f.cmd.Start())
	go func() { f.done <- f.cmd.Wait() }()
	f.t.Cleanup(func() { f.cmd.Process.Kill() })
}

// finish closes the worker and waits for it to exit.
func (f *flight) finish() {
	f.t.Helper()
	must.OK(f.t, CloseWorker(f.dir))
	if code := f.wait(); code != 0 {
		f.t.Fatalf("the worker exited with %d: %s", code, f.read(WorkerLogFile))
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

// Each task of a worker ends as it would alone: the failure, time limit, memory use and
// leftover processes of one do not affect the next.
func TestWorkerRunsEachTaskAsIfAlone(t *testing.T) {
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
		f.start()
		first.untilFile(OutcomeFile)
		f.feed(broken, large, small) // while it runs
		f.finish()

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
			t.Errorf("the small one after it used %v s and %d bytes", o.CPUSeconds, o.MaxRSSBytes)
		}
		must.Equal(t, "log", small.read(LogFile), "small\nsecond step\n")
		must.Equal(t, "log", fails.read(LogFile), "to the log\n")
		if got := first.read(WorkDir, OutDir, "home"); strings.TrimSpace(got) != first.path(WorkDir) {
			t.Errorf("HOME %q, want %q", got, first.path(WorkDir))
		}
	})
}

// A stopped task ends in any state, and no other task does.
func TestWorkerStopsOneTask(t *testing.T) {
	inEachFlight(t, func(t *testing.T, f *flight) {
		runs := row(t, `sleep 60`)
		waits := row(t, `echo never`)
		goes := row(t, `while [ ! -e out/go ]; do sleep 0.02; done`)
		f.feed(runs, waits, goes)
		f.start()
		runs.untilFile(RunFile)
		_, err := RequestStop(waits.dir)
		must.OK(t, err)
		waits.untilFile(OutcomeFile) // although another task is running
		if runs.has(OutcomeFile) {
			t.Error("the task before it has ended")
		}
		_, err = RequestStop(runs.dir)
		must.OK(t, err)
		goes.untilFile(RunFile)
		goes.release()
		f.finish()
		for _, a := range []*attempt{runs, waits} {
			if o := a.ended(); o.Cause != protocol.CauseStopped {
				t.Errorf("stopped: %+v", o)
			}
		}
		if o := goes.ended(); o.Cause != protocol.CauseDone || waits.has(RunFile) {
			t.Errorf("the next task: %+v; the task stopped first had started: %v", o, waits.has(RunFile))
		}
	})
}

// A shutdown interrupts one task and starts no other, even while a task that was stopped
// before is ending.
func TestWorkerEndsWithTheMachine(t *testing.T) {
	for stopped, want := range map[bool]protocol.Cause{false: protocol.CauseInterrupted, true: protocol.CauseStopped} {
		inEachFlight(t, func(t *testing.T, f *flight) {
			runs := row(t, `trap 'echo > out/asked; while [ ! -e out/go ]; do sleep 0.02; done; exit' TERM; echo > out/ready; while true; do sleep 0.02; done`)
			waits := row(t, `sleep 60`)
			f.feed(runs, waits)
			f.start()
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
			// A signal that arrives just after the end of a task interrupts the next one.
			if waits.has(RunFile) && waits.ended().Cause != protocol.CauseInterrupted {
				t.Errorf("stopped before: %v: the next task started and ended with %+v", stopped, waits.ended())
			}
		})
	}
}

// Killing a worker kills its running program, and the next worker runs only the tasks that
// had not started.
func TestNextWorkerRunsWhatHadNotBegun(t *testing.T) {
	inEachFlight(t, func(t *testing.T, f *flight) {
		ended, runs, waits := row(t, `echo x >>out/count`), row(t, `echo x >>out/count; >out/counted; sleep 60`), row(t, `echo x >>out/count`)
		f.feed(ended, runs, waits)
		f.start()
		runs.untilFile(WorkDir, OutDir, "counted")
		must.OK(t, f.cmd.Process.Kill())
		f.wait()
		must.OK(t, process.KillMarked(t.Context(), runs.spec.Token)) // as executors do
		if runs.has(OutcomeFile) || waits.has(RunFile) {
			t.Fatal("a killed worker wrote an outcome or started another task")
		}
		f.done = make(chan error, 1)
		f.start() // it reads the chunk of the previous worker
		waits.untilFile(OutcomeFile)
		f.finish()
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

func TestOnlyOneWorkerPerDirectory(t *testing.T) {
	t.Parallel()
	f := newFlight(t)
	a := row(t, `while [ ! -e out/go ]; do sleep 0.02; done`)
	f.feed(a)
	f.start()
	a.untilFile(RunFile)
	second := exec.Command(os.Args[0], "task", f.dir, "--worker")
	if err := second.Run(); err == nil || second.ProcessState.ExitCode() != ExitRefused {
		t.Errorf("the second worker: %v", err)
	}
	a.release()
	f.finish()
}

// An outcome that was not made durable says during which boot it was written.
func TestUnsyncedWorkerNamesTheBoot(t *testing.T) {
	t.Parallel()
	f := newFlight(t)
	a := row(t, `echo x >out/x`)
	f.feed(a)
	f.start("--unsynced")
	f.finish()
	boot, err := process.BootID()
	must.OK(t, err)
	if o := a.ended(); o.Unsynced != boot || o.Cause != protocol.CauseDone {
		t.Errorf("%+v, want boot %s", o, boot)
	}
}

// An error in one task's directory, or in a chunk, does not affect the other tasks.
func TestWorkerSkipsWhatItCannotRun(t *testing.T) {
	t.Parallel()
	f := newFlight(t)
	gone, good := row(t, `true`), row(t, `true`)
	must.OK(t, os.RemoveAll(gone.dir))
	f.feed(gone, good)
	must.OK(t, os.WriteFile(f.path("rows.2"), []byte("{"), 0o600))
	f.fed++
	last := row(t, `true`)
	f.feed(last, good) // good is already assigned and must not run twice
	f.start()
	f.finish()
	for _, a := range []*attempt{good, last} {
		if o := a.ended(); o.Cause != protocol.CauseDone {
			t.Errorf("%+v", o)
		}
	}
}

// A stopped worker starts no task, even before it receives a signal.
func TestStoppedWorkerBeginsNothing(t *testing.T) {
	t.Parallel()
	f := newFlight(t)
	a := row(t, `true`)
	f.feed(a)
	_, err := RequestStop(f.dir)
	must.OK(t, err)
	f.start()
	f.finish()
	if Exists(a.dir, RunFile) || Exists(a.dir, OutcomeFile) {
		t.Error("a task has started")
	}
}

// The tasks that a worker returns never start there, even if they are assigned to it
// later.
func TestWorkerReturnsWhatHasNotBegun(t *testing.T) {
	inEachFlight(t, func(t *testing.T, f *flight) {
		runs, waits, late := row(t, `while [ ! -e out/go ]; do sleep 0.02; done`), row(t, `true`), row(t, `true`)
		f.feed(runs, waits)
		f.start()
		runs.untilFile(RunFile)
		if Returned(f.dir) {
			t.Error("it returned tasks without a request")
		}
		must.OK(t, AskReturn(f.dir))
		must.Become(t, "the worker to return them", func() bool { return Returned(f.dir) })
		f.feed(late)
		runs.release()
		must.Equal(t, "exit code", f.wait(), 0)
		if o := runs.ended(); o.Cause != protocol.CauseDone {
			t.Errorf("the one that ran: %+v", o)
		}
		for _, a := range []*attempt{waits, late} {
			if a.has(RunFile) || a.has(OutcomeFile) {
				t.Error("a returned task was started")
			}
		}
	})
}

func TestClearWorkerLeavesNothingToRun(t *testing.T) {
	t.Parallel()
	f := newFlight(t)
	old := row(t, `true`)
	f.feed(old)
	must.OK(t, CloseWorker(f.dir))
	must.OK(t, ClearWorker(f.dir))
	f.fed = 0
	next := row(t, `true`)
	f.feed(next)
	f.start()
	next.untilFile(OutcomeFile)
	f.finish()
	if old.has(RunFile) {
		t.Error("a task of the previous worker was run")
	}
	if err := AssignTasks(filepath.Join(f.dir, "missing"), 1, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("feeding without a worker: %v", err)
	}
}
