package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/executor/local"
	"molrun/app/task"
	_ "molrun/app/task/gauged" // the test binary runs tasks, as molrun does
	"molrun/app/task/process"
	"molrun/app/test/must"
)

// TestMain lets the test binary act as the service: `serve` starts a task and
// waits to be killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "serve" {
		serve(os.Args[2], os.Args[3])
	}
	// Parallel tests mostly wait. The command line overrides this.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func serve(dir, token string) {
	e := local.New(local.Options{Program: os.Args[0]})
	h, err := e.Start(context.Background(), app.Task{Dir: dir, Token: token})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(h)
	time.Sleep(time.Hour)
}

func newExecutor(t *testing.T) *local.Executor {
	t.Helper()
	return newExecutorOf(t, local.Options{Program: os.Args[0], StopMargin: 10 * time.Millisecond})
}

func newExecutorOf(t *testing.T, o local.Options) *local.Executor {
	t.Helper()
	e := local.New(o)
	t.Cleanup(func() {
		must.OK(t, e.Close())
	})
	return e
}

// newTask returns a task that runs the script. None of its processes outlives the test.
func newTask(t *testing.T, script string) app.Task {
	t.Helper()
	dir := t.TempDir()
	a := app.Task{Job: "01J", Attempt: 1, Dir: dir, Token: "local" + strings.ReplaceAll(dir, "/", "-")}
	must.OK(t, os.MkdirAll(filepath.Join(dir, task.WorkDir, "out"), 0o700))
	err := task.WriteSpec(dir, task.Spec{
		Token: a.Token, GraceSeconds: 1, Steps: []app.Step{{Argv: []string{"sh", "-c", script}}},
	})
	must.OK(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		must.OK(t, process.KillMarked(ctx, a.Token))
	})
	return a
}

// stubborn starts a process in its own session that ignores SIGTERM.
const stubborn = `setsid sh -c 'trap "" TERM; echo > out/stubborn; while :; do sleep 1000; done' &
while [ ! -e out/stubborn ]; do sleep 0.02; done
echo > out/ready
`

const (
	forever = "while :; do sleep 1000; done"
	untilGo = "while [ ! -e out/go ]; do sleep 0.02; done\n"
)

func start(t *testing.T, e *local.Executor, a app.Task) app.Task {
	t.Helper()
	h, err := e.Start(t.Context(), a)
	must.OK(t, err)
	a.Handle = h
	return a
}

func output(a app.Task, name string) string {
	return filepath.Join(a.Dir, task.WorkDir, "out", name)
}

func untilExists(t *testing.T, path string) {
	t.Helper()
	must.Become(t, path, func() bool {
		_, err := os.Stat(path)
		return !errors.Is(err, os.ErrNotExist)
	})
}

func touch(t *testing.T, path string) {
	t.Helper()
	must.Write(t, path, "")
}

// ended waits for the end of the task and checks its cause.
func ended(t *testing.T, e *local.Executor, a app.Task, want app.Cause) *app.Outcome {
	t.Helper()
	now := over(t, e, a)
	if now.Outcome == nil || now.Outcome.Cause != want {
		t.Fatalf("status %+v, outcome %+v; want %s; log %s", now, now.Outcome, want, must.Read(t, filepath.Join(a.Dir, task.LogFile)))
	}
	return now.Outcome
}

// lost waits until the task is lost and checks the reason.
func lost(t *testing.T, e *local.Executor, a app.Task, says string) {
	t.Helper()
	if now := over(t, e, a); now.State != app.TaskLost || !strings.Contains(now.Reason, says) {
		t.Errorf("status %+v, want lost: %s", now, says)
	}
}

func status(t *testing.T, e *local.Executor, a app.Task) app.TaskStatus {
	t.Helper()
	all, err := e.Status(t.Context(), []app.Task{a})
	must.OK(t, err)
	return all[0]
}

// over waits until the task has ended or is lost, and checks that none of its processes
// remains.
func over(t *testing.T, e *local.Executor, a app.Task) app.TaskStatus {
	t.Helper()
	var now app.TaskStatus
	must.Become(t, "end of the task", func() bool {
		now = status(t, e, a)
		return now.State >= app.TaskEnded
	})
	if left := marked(t, a); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	return now
}

func marked(t *testing.T, a app.Task) []int {
	t.Helper()
	pids, err := process.Marked(a.Token)
	must.OK(t, err)
	return pids
}

// shimOf returns the process that the handle identifies.
func shimOf(t *testing.T, h app.Handle) process.ID {
	t.Helper()
	var p process.ID
	if err := json.Unmarshal([]byte(h), &p); err != nil {
		t.Fatalf("handle %q: %v", h, err)
	}
	return p
}
