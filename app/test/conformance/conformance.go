// Package conformance tests the behavior that the runner expects of every app.Executor.
// It uses real programs and only the exported interface.
package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/task"
	"molrun/app/test/must"
)

// Suite configures the tests.
type Suite struct {
	// New returns an executor like the one that a service creates when it starts, and
	// closes it in t.Cleanup. The tests call it again to simulate a restart.
	New func(t *testing.T) app.Executor
	// Dir returns an empty directory for a task, t.TempDir by default.
	Dir func(t *testing.T) string
	// Timeout is how long a task can take to start or to end, must.Patience by default.
	Timeout time.Duration
	// Parallel runs the tests in parallel.
	Parallel bool
}

// Run runs all tests.
func (s Suite) Run(t *testing.T) {
	if s.Dir == nil {
		s.Dir = func(t *testing.T) string { return t.TempDir() }
	}
	if s.Timeout == 0 {
		s.Timeout = must.Patience
	}
	tests := []struct {
		name string
		test func(*suite)
	}{
		{"outcomes come in the order of the request", (*suite).outcomes},
		{"a program that cannot start is an outcome", (*suite).cannotStart},
		{"a signal is an outcome", (*suite).signalled},
		{"a task ends at its time limit", (*suite).tooLong},
		{"a task ends at its memory limit", (*suite).tooLarge},
		{"the log of a running task can be read", (*suite).logged},
		{"the output of a task is there when it has ended", (*suite).output},
		{"a running task reports its progress", (*suite).progress},
		{"a task is stopped", (*suite).stopped},
		{"a task is stopped as soon as it is started", (*suite).stoppedEarly},
		{"stopping a task that has ended is harmless", (*suite).stoppedLate},
		{"the next executor finds a running task", (*suite).adopted},
		{"the next executor collects a task that ended meanwhile", (*suite).collected},
		{"a repeated start does not run a task twice", (*suite).startedTwice},
		{"a task that was never started is lost", (*suite).neverStarted},
		{"many callers at once", (*suite).concurrent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if s.Parallel {
				t.Parallel()
			}
			tt.test(&suite{Suite: s, T: t, executor: s.New(t)})
		})
	}
}

// suite is one test.
type suite struct {
	Suite
	*testing.T
	executor app.Executor
}

// waiting is a script fragment that waits for the file out/go.
const waiting = "while [ ! -e out/go ]; do sleep 0.05; done\n"

// task returns a task that runs the script.
func (s *suite) task(script string) app.Task {
	s.Helper()
	return s.taskOf("sh", "-c", script)
}

func (s *suite) taskOf(argv ...string) app.Task {
	s.Helper()
	return s.taskWith(task.Spec{Steps: []app.Step{{Name: "only", Argv: argv}}})
}

// taskWith returns a task with this specification, plus the settings that all tasks
// share.
func (s *suite) taskWith(spec task.Spec) app.Task {
	s.Helper()
	t := app.Task{
		Job: "01JCONFORMANCE", Attempt: 1, Dir: s.Dir(s.T),
		Needs: placement.Resources{CPUs: 1, MemoryBytes: 256 << 20}, Limit: 10 * time.Minute,
	}
	t.Token = "conformance-" + rand.Text()
	for _, dir := range []string{"in", "out", "tmp"} {
		must.OK(s, os.MkdirAll(filepath.Join(t.Dir, task.WorkDir, dir), 0o700))
	}
	spec.Token, spec.Job, spec.Attempt, spec.CPUs, spec.GraceSeconds = t.Token, string(t.Job), t.Attempt, 1, 5
	if spec.MaxRuntimeSeconds == 0 {
		spec.MaxRuntimeSeconds = int64(t.Limit.Seconds())
	}
	must.OK(s, task.WriteSpec(t.Dir, spec))
	t.Limit = time.Duration(spec.MaxRuntimeSeconds) * time.Second
	if spec.MemoryBytes > 0 {
		t.Needs.MemoryBytes = spec.MemoryBytes
	}
	return t
}

// start starts the task, and stops it when the test ends.
func (s *suite) start(t app.Task) app.Task {
	s.Helper()
	h, err := s.executor.Start(s.Context(), t)
	must.OK(s, err)
	t.Handle = h
	s.Cleanup(func() { s.end(t) })
	return t
}

// end stops the task. It runs after the test's own context has ended.
func (s *suite) end(t app.Task) {
	ctx, cancel := context.WithTimeout(context.Background(), s.Timeout)
	defer cancel()
	for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if err := s.executor.Stop(ctx, t); err != nil {
			s.Error(err)
			return
		}
		all, err := s.executor.Status(ctx, []app.Task{t})
		if err == nil && all[0].State >= app.TaskEnded {
			return
		}
	}
	s.Errorf("the task %s can't be stopped", t.Token)
}

func (s *suite) status(tasks ...app.Task) []app.TaskStatus {
	s.Helper()
	all, err := s.executor.Status(s.Context(), tasks)
	must.OK(s, err)
	if len(all) != len(tasks) {
		s.Fatalf("%d statuses for %d tasks", len(all), len(tasks))
	}
	return all
}

// until polls the task's status until is returns true.
func (s *suite) until(t app.Task, what string, is func(app.TaskStatus) bool) app.TaskStatus {
	s.Helper()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		now := s.status(t)[0]
		if is(now) {
			return now
		}
		if time.Since(begin) > s.Timeout {
			s.Fatalf("not %s within %v, but %+v", what, s.Timeout, now)
		}
	}
}

func (s *suite) ended(t app.Task) *app.Outcome {
	s.Helper()
	now := s.until(t, "over", func(now app.TaskStatus) bool { return now.State >= app.TaskEnded })
	if now.State != app.TaskEnded || now.Outcome == nil {
		s.Fatalf("status %+v, want an outcome", now)
	}
	return now.Outcome
}

// ends waits for the task to end and checks the cause.
func (s *suite) ends(t app.Task, want app.Cause) {
	s.Helper()
	if o := s.ended(t); o.Cause != want {
		s.Errorf("outcome %+v, want %s", o, want)
	}
}

// exits waits for the task to end and checks the exit code.
func (s *suite) exits(t app.Task, want int) {
	s.Helper()
	if o := s.ended(t); o.ExitCode != want {
		s.Errorf("outcome %+v, want exit code %d", o, want)
	}
}

func (s *suite) running(t app.Task) app.TaskStatus {
	s.Helper()
	return s.until(t, "running", func(now app.TaskStatus) bool { return now.State == app.TaskRunning })
}

// release lets a waiting script continue.
func (s *suite) release(t app.Task) {
	s.Helper()
	must.OK(s, os.WriteFile(filepath.Join(t.Dir, task.WorkDir, "out", "go"), nil, 0o600))
}

// has reports whether the task's program has written the output file name.
func (s *suite) has(t app.Task, name string) bool {
	_, err := os.Stat(filepath.Join(t.Dir, task.WorkDir, "out", name))
	return !errors.Is(err, os.ErrNotExist)
}

func (s *suite) untilHas(t app.Task, name string) {
	s.Helper()
	s.until(t, "writing "+name, func(app.TaskStatus) bool { return s.has(t, name) })
}
