package slurm_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/executor/slurm"
	"molrun/app/task"
	"molrun/app/test/must"
)

// stubborn is the part of a script that ignores SIGTERM.
const stubborn = "trap '' TERM\n"

// rows prepares a task for each script, all for one worker that is not started yet.
func (w *world) rows(scripts ...string) []app.Task {
	w.Helper()
	dir := filepath.Join(w.options.SharedDir, "workers", fmt.Sprintf("P%d%d-1", os.Getpid(), time.Now().UnixNano()))
	must.OK(w, os.MkdirAll(dir, 0o700))
	var all []app.Task
	for _, s := range scripts {
		t := w.task(s)
		t.Worker = dir
		all = append(all, t)
	}
	w.Cleanup(func() {
		if err := task.CloseWorker(dir); err != nil && !os.IsNotExist(err) {
			w.Error(err)
		}
		w.cluster.Run(w, "scancel", "--quiet", "--name="+w.workerName(all[0]))
	})
	return all
}

func (w *world) workerName(t app.Task) string { return w.prefix() + "-" + filepath.Base(t.Worker) }

// fly starts the worker of the tasks.
func (w *world) fly(e *slurm.Executor, rows []app.Task) {
	w.Helper()
	var dirs []string
	for _, t := range rows {
		dirs = append(dirs, t.Dir)
	}
	must.OK(w, e.StartWorker(w.Context(), rows[0].Worker, rows[0], dirs))
}

// freeze stops a process, as a debugger does, until the test ends.
func (w *world) freeze(pid int) {
	w.Helper()
	must.OK(w, syscall.Kill(pid, syscall.SIGSTOP))
	w.Cleanup(func() { syscall.Kill(pid, syscall.SIGCONT) })
}

// land shuts down the worker of a task and waits until it has exited, up to the patience
// of the tests.
func (w *world) land(e *slurm.Executor, t app.Task) {
	w.Helper()
	must.Become(w, "exit of the worker", func() bool {
		ctx, cancel := context.WithTimeout(w.Context(), patience)
		defer cancel()
		gone, err := e.ShutdownWorker(ctx, t.Worker)
		must.OK(w, err)
		return gone
	})
}

// workerOver waits until Slurm reports that the worker's only job has ended, which is later
// than the release of the worker's lock, and returns its state.
func (w *world) workerOver(t app.Task) (state string) {
	w.Helper()
	must.Become(w.T, "the job of the worker is over", func() bool {
		jobs := w.jobs(w.workerName(t))
		if len(jobs) != 1 {
			w.Fatalf("Slurm has %v, want one job", jobs)
		}
		_, state, _ = strings.Cut(jobs[0], ":")
		return state != "RUNNING" && state != "COMPLETING"
	})
	return state
}

func TestRowsOfAWorker(t *testing.T) {
	w := newWorld(t)
	e := w.executor()
	all := w.rows("exit 3", "echo > out/ready\n"+untilGo, "echo > out/ran", "true")
	w.fly(e, all)
	w.fly(e, all) // a repeated start, as after a lost response, must have no effect
	if o := w.ended(e, all[0]); o.Cause != app.CauseExit || o.ExitCode != 3 || o.Unsynced != "" {
		t.Errorf("the first: %+v", o)
	}
	if now := w.running(e, all[1]); now.StartedAt.IsZero() {
		t.Errorf("the second: %+v", now)
	}
	if now := w.status(e, all[2]); now.State != app.TaskStarting {
		t.Errorf("the third: %+v, want that it waits", now)
	}
	must.OK(t, e.Stop(t.Context(), all[3]))
	w.ends(e, all[3], app.CauseStopped)
	if now := w.status(e, all[1]); now.State != app.TaskRunning {
		t.Errorf("the second, when another was stopped: %+v", now)
	}
	later := w.rows("true")[0] // the worker accepts further jobs
	later.Worker = all[0].Worker
	must.OK(t, task.AssignTasks(later.Worker, 2, []string{later.Dir}))
	w.release(all[1])
	for _, row := range append(all[1:3:3], later) {
		w.ends(e, row, app.CauseDone)
	}
	w.land(e, all[0])
	must.Equal(t, "the job of Slurm", w.workerOver(all[0]), "COMPLETED")
}

// Only the running job is lost with its worker. Ended jobs are not, and jobs that never
// began run in another worker.
func TestKilledWorker(t *testing.T) {
	w := newWorld(t)
	w.options.Late = time.Hour
	e := w.executor()
	all := w.rows("true", "echo > out/ready\n"+untilGo, "echo > out/ran")
	w.fly(e, all)
	w.running(e, all[1])
	w.kill(all[1])
	if now := w.over(e, all[1]); now.State != app.TaskLost || now.StartedAt.IsZero() || !strings.Contains(now.Reason, "Slurm killed the job on node") {
		t.Errorf("the one that ran: %+v", now)
	}
	if now := w.over(e, all[2]); now.State != app.TaskLost || task.Exists(all[2].Dir, task.RunFile) {
		t.Errorf("the next: %+v", now)
	}
	w.ends(e, all[0], app.CauseDone)
	w.land(e, all[0])
	rest := w.rows("true")
	rest[0] = all[2]
	rest[0].Worker = strings.TrimSuffix(all[2].Worker, "-1") + "-2"
	must.OK(t, os.Mkdir(rest[0].Worker, 0o700))
	w.fly(e, rest)
	w.ends(e, rest[0], app.CauseDone)
}

// The running job of a canceled worker reports who canceled it. The jobs behind it end
// without further delay.
func TestCancelledWorker(t *testing.T) {
	w := newWorld(t)
	w.options.Late = time.Hour
	e := w.executor()
	all := w.rows("echo > out/ready\n"+untilGo, "echo > out/ran")
	w.fly(e, all)
	w.running(e, all[0])
	id, _, _ := strings.Cut(w.jobs(w.workerName(all[0]))[0], ":")
	w.cluster.Run(t, "scancel", id)
	said := "The job was cancelled in Slurm by the user root (0) while Slurm job " + id + " ran on node c"
	if o := w.ended(e, all[0]); o.Cause != app.CauseStopped || !strings.HasPrefix(o.Message, said) || o.StartedAt.IsZero() {
		t.Errorf("the one that ran: %+v", o)
	}
	if now := w.over(e, all[1]); now.State != app.TaskLost || now.Outcome == nil || !strings.HasPrefix(now.Outcome.Message, said) {
		t.Errorf("the next: %+v", now)
	}
}

// A job reports which node failed under its worker, and Slurm's state.
func TestWorkerOnANodeThatFails(t *testing.T) {
	w := newWorld(t)
	w.options.Late = time.Hour
	e := w.executor()
	all := w.rows("echo > out/ready\n"+untilGo, "echo > out/ran")
	w.fly(e, all)
	w.running(e, all[0])
	node := strings.TrimSpace(w.cluster.Run(t, "squeue", "--noheader", "--name="+w.workerName(all[0]), "--format=%N"))
	w.cluster.Run(t, "scontrol", "update", "NodeName="+node, "State=DOWN", "Reason=test")
	w.lost(e, all[0], "its node "+node+" failed (NODE_FAIL")
	w.lost(e, all[1], "its node "+node+" failed (NODE_FAIL")
}

// Jobs of a worker that Slurm has forgotten report so while it may reappear, unless its
// process is known to have exited.
func TestForgottenWorker(t *testing.T) {
	w := newWorld(t)
	w.options.LostAfter = time.Hour
	e := w.executor()
	all := w.rows("echo > out/ready\n"+untilGo, "echo > out/ran")
	w.fly(e, all)
	w.running(e, all[0])
	must.OK(t, e.Close())
	w.standIn("squeue", "exit 0")
	w.standIn("sacct", "exit 0")
	e = w.executor()
	w.until(e, all[1], "waiting for a reason", func(now app.TaskStatus) bool {
		return now.State == app.TaskStarting && strings.HasPrefix(now.Reason, "Slurm no longer lists job")
	})
	w.running(e, all[0])
	w.kill(all[0])
	for _, row := range all {
		w.lost(e, row, "Slurm has no record of its job, and its process has exited")
	}
}

// Stopped jobs do not wait for a busy cluster.
func TestRowsStoppedWhileTheirWorkerWaits(t *testing.T) {
	w := newWorld(t)
	e := w.executor()
	all := w.rows("echo > out/ran", "echo > out/ran")
	for i := range all {
		all[i].Placement.Options = []string{"--begin=now+1hour"}
	}
	w.fly(e, all)
	w.until(e, all[1], "waiting for a reason", func(now app.TaskStatus) bool {
		return now.State == app.TaskStarting && strings.Contains(now.Reason, "BeginTime")
	})
	for i := range all {
		must.OK(t, e.Stop(t.Context(), all[i]))
		w.ends(e, all[i], app.CauseStopped)
		if i == 0 {
			if now := w.status(e, all[1]); now.State != app.TaskStarting {
				t.Errorf("the other row: %+v", now)
			}
		}
	}
	w.land(e, all[0])
	must.Equal(t, "the job of Slurm", w.workerOver(all[0]), "CANCELLED")
}

// A job that does not end when stopped is ended together with its worker.
func TestStoppedRowThatDoesNotEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the margin of a stop, 15 s")
	}
	w := newWorld(t)
	w.options.Grace = time.Second
	e := w.executor()
	all := w.rows(stubborn+"echo > out/ready\n"+untilGo, "echo > out/ran")
	w.fly(e, all)
	w.running(e, all[0])
	run, err := task.ReadRun(all[0].Dir)
	must.OK(t, err)
	w.freeze(run.PID) // so that the worker's process can't end the job either
	w.until(e, all[0], "over", func(now app.TaskStatus) bool {
		must.OK(t, e.Stop(t.Context(), all[0]))
		return now.State == app.TaskEnded && now.Outcome.Cause == app.CauseStopped
	})
	if now := w.over(e, all[1]); now.State != app.TaskLost || task.Exists(all[1].Dir, task.RunFile) {
		t.Errorf("its neighbour: %+v, want that it can run elsewhere", now)
	}
}

// If a worker can't start, all its jobs fail with the reason for that.
func TestWorkerThatCannotStart(t *testing.T) {
	w := newWorld(t)
	w.options.HoldGrace = time.Second
	e := w.executor()
	all := w.rows("true", "true")
	for i := range all {
		all[i].Needs.CPUs = 100
	}
	w.fly(e, all)
	for _, row := range all {
		if o := w.ended(e, row); o.Cause != app.CauseCannotStart || !strings.Contains(o.Message, "no node of its partition can run it") {
			t.Errorf("outcome %+v, want cannot_start with a reason", o)
		}
	}
	none := w.rows("true")
	none[0].Placement.Partition = "nowhere"
	err := e.StartWorker(t.Context(), none[0].Worker, none[0], []string{none[0].Dir})
	must.Fail(t, "in a partition that does not exist", err, "The cluster rejected the job")
}
