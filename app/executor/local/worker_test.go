package local_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/executor/local"
	"molrun/app/task"
	"molrun/app/task/process"
	"molrun/app/test/must"
)

// startWorker starts a worker with a task for each script.
func startWorker(t *testing.T, e *local.Executor, scripts ...string) []app.Task {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "WORKER")
	var all []app.Task
	var rows []string
	for _, script := range scripts {
		a := newTask(t, script)
		a.Worker = dir
		all, rows = append(all, a), append(rows, a.Dir)
	}
	must.OK(t, e.StartWorker(t.Context(), dir, all[0], rows))
	t.Cleanup(func() { task.CloseWorker(dir) })
	return all
}

// kill kills the process that runs the task.
func kill(t *testing.T, a app.Task) {
	t.Helper()
	run, err := task.ReadRun(a.Dir)
	if err == nil {
		err = run.Signal(syscall.SIGKILL)
	}
	must.OK(t, err)
}

func TestRowsOfAWorker(t *testing.T) {
	e := newExecutor(t)
	all := startWorker(t, e, "exit 3", "echo > out/ready\n"+untilGo, "true")
	if now := over(t, e, all[0]); now.Outcome == nil || now.Outcome.Cause != app.CauseExit || now.StartedAt.IsZero() {
		t.Errorf("the first: %+v", now)
	}
	untilExists(t, output(all[1], "ready"))
	if now := status(t, e, all[1]); now.State != app.TaskRunning || now.StartedAt.IsZero() {
		t.Errorf("the second: %+v, want running", now)
	}
	if now := status(t, e, all[2]); now.State != app.TaskStarting {
		t.Errorf("the third: %+v, want that it waits", now)
	}
	other := newTask(t, "true") // StartWorker must not give a live worker more jobs
	must.OK(t, e.StartWorker(t.Context(), all[0].Worker, other, []string{other.Dir}))
	touch(t, output(all[1], "go"))
	ended(t, e, all[2], app.CauseDone)
	if task.Exists(other.Dir, task.RunFile) {
		t.Error("ran a task not assigned to the live worker")
	}
}

// The running job is lost with its processes, and the next never began.
func TestKilledWorker(t *testing.T) {
	e := newExecutor(t)
	all := startWorker(t, e, "true", stubborn+forever, "true")
	untilExists(t, output(all[1], "ready"))
	stale := newTask(t, "true") // assigned to the worker that is killed
	must.OK(t, task.AssignTasks(all[0].Worker, 2, []string{stale.Dir}))
	kill(t, all[1])
	lost(t, e, all[1], "the task's process was killed")
	if left := marked(t, all[1]); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if now := status(t, e, all[2]); now.State != app.TaskLost || task.Exists(all[2].Dir, task.RunFile) {
		t.Errorf("the next: %+v", now)
	}
	if now := status(t, e, all[0]); now.State != app.TaskEnded {
		t.Errorf("the one that had ended: %+v", now)
	}
	must.OK(t, e.StartWorker(t.Context(), all[2].Worker, all[2], []string{all[2].Dir}))
	if now := over(t, e, all[2]); now.State != app.TaskEnded {
		t.Errorf("with another worker: %+v", now)
	}
	must.OK(t, task.CloseWorker(all[2].Worker))
	must.Become(t, "exit of the worker", func() bool {
		locked, err := task.Locked(all[2].Worker)
		return !locked && err == nil
	})
	if task.Exists(stale.Dir, task.RunFile) {
		t.Error("the second worker ran a job assigned to the first")
	}
}

// Stop kills only the job that does not end.
func TestStopRowThatDoesNotEnd(t *testing.T) {
	e := newExecutorOf(t, local.Options{StopMargin: time.Nanosecond})
	all := startWorker(t, e, stubborn+forever, "true")
	untilExists(t, output(all[0], "ready"))
	must.Become(t, "the row is gone", func() bool {
		must.OK(t, e.Stop(context.Background(), all[0]))
		return status(t, e, all[0]).State == app.TaskEnded
	})
	if now := over(t, e, all[0]); now.Outcome.Cause != app.CauseStopped {
		t.Errorf("%+v", now.Outcome)
	}
	ended(t, e, all[1], app.CauseDone)
}

// An outcome that was not made durable is invalid after a reboot: the output may be
// incomplete.
func TestUnsyncedOutcomeOfAnotherBoot(t *testing.T) {
	e := newExecutor(t)
	a := startWorker(t, e, "true")[0]
	over(t, e, a)
	path := filepath.Join(a.Dir, task.OutcomeFile)
	text, err := os.ReadFile(path)
	must.OK(t, err)
	boot, err := process.BootID()
	if err != nil || !bytes.Contains(text, []byte(boot)) {
		t.Fatalf("the outcome does not name the boot, %v: %s", err, text)
	}
	must.OK(t, os.WriteFile(path, bytes.ReplaceAll(text, []byte(boot), []byte("another")), 0o600))
	if now := status(t, e, a); now.State != app.TaskLost || now.Reason != "the machine was restarted" || now.Outcome != nil {
		t.Errorf("%+v", now)
	}
}
