package slurm_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/executor/slurm"
	"molrun/app/task"
	"molrun/app/test/cluster"
	"molrun/app/test/must"
)

func TestJobCancelledInSlurmByOthersFails(t *testing.T) {
	w := newWorld(t)
	e := w.executor()
	waits := w.task(untilGo)
	waits.Placement.Options = []string{"--begin=now+1hour"}
	waits, runs := w.start(e, waits), w.start(e, w.task(untilGo))
	w.running(e, runs)
	for _, a := range []app.Task{waits, runs} {
		w.cluster.Run(t, "scancel", number(a))
		o := w.ended(e, a)
		if o.Cause != app.CauseStopped || !strings.HasPrefix(o.Message, "The job was cancelled in Slurm by the user root (0)") {
			t.Errorf("outcome %+v, want the user who cancelled it", o)
		}
	}
}

func TestImpossibleJobIsCancelled(t *testing.T) {
	w := newWorld(t)
	w.options.HoldGrace = time.Second
	e := w.executor()
	a := w.task("echo > out/ran")
	a.Needs.CPUs = 100
	a = w.start(e, a)
	w.until(e, a, "waiting for a reason", func(now app.TaskStatus) bool {
		return now.State == app.TaskStarting && strings.Contains(now.Reason, "PartitionConfig")
	})
	o := w.ended(e, a)
	if o.Cause != app.CauseCannotStart || !strings.Contains(o.Message, "no node of its partition can run it") {
		t.Errorf("outcome %+v, want cannot_start with a reason", o)
	}
	if jobs := w.jobs(w.name(a)); len(jobs) != 1 || !strings.HasSuffix(jobs[0], ":CANCELLED") {
		t.Errorf("Slurm has %v", jobs)
	}
}

func TestQueuedJobReportsSlurmsReason(t *testing.T) {
	w := newWorld(t)
	w.options.HoldGrace = time.Hour
	e := w.executor()
	a := w.task("exit 0")
	a.Placement.Options = []string{"--begin=now+1hour"}
	a = w.start(e, a)
	w.until(e, a, "waiting for a reason", func(now app.TaskStatus) bool {
		return now.State == app.TaskStarting && strings.Contains(now.Reason, "BeginTime") && strings.Contains(now.Reason, number(a))
	})
	w.cluster.Run(t, "scontrol", "hold", number(a))
	w.until(e, a, "held", func(now app.TaskStatus) bool { return strings.Contains(now.Reason, "JobHeld") })
	must.OK(t, e.Stop(t.Context(), a))
	w.ends(e, a, app.CauseStopped)
}

func TestSlurmEnforcesTimeLimit(t *testing.T) {
	w := newWorld(t)
	e := w.executor()
	a := w.start(e, w.task(untilGo))
	w.running(e, a)
	w.cluster.Run(t, "scontrol", "update", "jobid="+number(a), "EndTime=now+1")
	if o := w.ended(e, a); o.Cause != app.CauseTimeout || o.StartedAt.IsZero() {
		t.Errorf("outcome %+v, want timeout", o)
	}
}

func TestKilledTaskReportsWhatSlurmKnows(t *testing.T) {
	w := newWorld(t)
	e := w.executor()
	a := w.start(e, w.task(untilGo))
	w.running(e, a)
	w.kill(a)
	o := w.ended(e, a)
	if o.Cause != app.CauseSignal || o.Signal != "SIGKILL" || !strings.Contains(o.Message, "memory") {
		t.Errorf("outcome %+v, want SIGKILL with memory as a possible reason", o)
	}
}

func TestTaskIsLostOnNodeWithoutSharedDirectory(t *testing.T) {
	w := newWorld(t)
	e := w.executor()
	a := w.task("exit 0")
	a.Placement.Options = []string{"--hold"}
	a = w.start(e, a)
	must.OK(t, os.Rename(a.Dir, a.Dir+"-unseen"))
	w.cluster.Run(t, "scontrol", "release", number(a))
	w.lost(e, a, "can't access the folder")
}

// TestRequeuedJobRunsNothingTwice has an administrator requeue a job that must not be
// requeued.
func TestRequeuedJobRunsNothingTwice(t *testing.T) {
	w := newWorld(t)
	e := w.executor()
	a := w.start(e, w.task("echo >> out/count; "+untilGo))
	w.running(e, a)
	w.cluster.Run(t, "scontrol", "update", "jobid="+number(a), "requeue=1")
	w.cluster.Run(t, "scontrol", "requeue", number(a))
	w.until(e, a, "waiting again", func(now app.TaskStatus) bool { return now.State == app.TaskStarting })
	w.cluster.Run(t, "scontrol", "update", "jobid="+number(a), "StartTime=now")
	now := w.over(e, a)
	if now.State == app.TaskEnded && now.Outcome.Cause != app.CauseInterrupted {
		t.Errorf("status %+v, outcome %+v; want lost or interrupted", now, now.Outcome)
	}
	must.Equal(t, "the program wrote", w.text(w.out(a, "count")), "\n")
}

func TestTaskOfCrashedNodeIsLost(t *testing.T) {
	w := worldOn(t, cluster.New(t, cluster.Knobs{Nodes: 1}))
	e := w.executor()
	a := w.start(e, w.task(untilGo))
	w.running(e, a)
	w.cluster.CrashNode(t, "c1")
	w.lost(e, a, "node c1 failed")
}

// Slurm gives up a node that it can't reach, but tasks there may still have access to the
// shared directory.
func TestTaskOfUnreachableNodeIsAwaited(t *testing.T) {
	w := worldOn(t, cluster.New(t, cluster.Knobs{Nodes: 1}))
	w.options.Late = time.Millisecond
	e := w.executor()
	a := w.start(e, w.task(untilGo))
	w.running(e, a)
	w.cluster.Kill(t, "c1")
	w.until(e, a, "given up by Slurm", func(app.TaskStatus) bool {
		return strings.Contains(strings.Join(w.jobs(w.name(a)), " "), "NODE_FAIL")
	})
	for begin := time.Now(); time.Since(begin) < 10*w.options.Poll; time.Sleep(w.options.Poll / 2) {
		if now := w.status(e, a); now.State != app.TaskRunning {
			t.Fatalf("status %+v while its process is running", now)
		}
	}
	w.release(a)
	w.ends(e, a, app.CauseDone)
}

func TestAccountingReportsJobsTheControllerForgot(t *testing.T) {
	w := newWorld(t)
	first := w.executor()
	tasks := append(w.startAll(first, 3, "exit 7"), w.start(first, w.task("exit 7")))
	w.untilAccounted(w.name(tasks[0]), 3)
	w.untilAccounted(w.name(tasks[3]), 1)
	for _, a := range tasks {
		must.OK(t, os.Remove(filepath.Join(a.Dir, task.OutcomeFile)))
	}
	w.standIn("squeue", "exit 0")
	second := w.executor()
	for _, a := range tasks {
		w.lost(second, a, "left no outcome on node c")
	}
}

// TestForgottenRunningJobIsAwaited simulates a controller that forgot a job in a crash.
func TestForgottenRunningJobIsAwaited(t *testing.T) {
	for _, killed := range []bool{false, true} {
		w := newWorld(t)
		first := w.executor()
		a := w.start(first, w.task(untilGo+"exit 5"))
		w.running(first, a)
		w.standIn("squeue", "exit 0")
		w.standIn("sacct", "exit 0")
		second := w.executor()
		begin := time.Now()
		w.until(second, a, "missing for long", func(now app.TaskStatus) bool {
			if now.State >= app.TaskEnded {
				t.Fatalf("status %+v of a running task", now)
			}
			return time.Since(begin) > 2*w.options.LostAfter
		})
		if !killed {
			w.release(a)
			if o := w.ended(second, a); o.ExitCode != 5 {
				t.Errorf("outcome %+v, want exit code 5", o)
			}
			continue
		}
		w.kill(a)
		w.lost(second, a, "no record of its job")
	}
}

// TestForgottenJobElsewhereIsLostByTimeLimitOrSharedLocks simulates file systems with
// locks local to each machine. A cluster on one machine shares all locks, so the test
// changes the record of where the task runs.
func TestForgottenJobElsewhereIsLostByTimeLimitOrSharedLocks(t *testing.T) {
	w := newWorld(t)
	first := w.executor()
	a, b := w.start(first, w.task(untilGo)), w.start(first, w.task(untilGo))
	w.running(first, a)
	w.running(first, b)
	w.kill(a)
	w.elsewhere(a)
	w.standIn("squeue", "exit 0")
	w.standIn("sacct", "exit 0")
	second := w.executor()
	begin := time.Now()
	w.until(second, a, "missing for long", func(now app.TaskStatus) bool {
		if now.State >= app.TaskEnded {
			t.Fatalf("status %+v of a task that may run on a machine with its own locks", now)
		}
		return time.Since(begin) > 2*w.options.LostAfter
	})
	w.elsewhere(b)
	third := w.executor()
	w.until(third, b, "its lock is seen", func(now app.TaskStatus) bool {
		return now.State == app.TaskRunning
	})
	w.lost(third, a, "")
	w.options.Now = func() time.Time { return time.Now().Add(a.Limit + time.Hour) }
	if now := w.over(w.executor(), a); now.State != app.TaskLost {
		t.Errorf("status %+v after the task's time limit, want lost", now)
	}
	w.release(b)
}

func TestUnreachableControllerChangesNothing(t *testing.T) {
	w := worldOn(t, cluster.New(t, cluster.Knobs{}))
	e := w.executor()
	a, b := w.start(e, w.task(untilGo+"exit 3")), w.start(e, w.task(untilGo+"exit 4"))
	w.running(e, a)
	w.running(e, b)
	w.cluster.Stop(t, cluster.Controller)
	must.Become(t, "nothing is known of the tasks", func() bool {
		_, err := e.Status(t.Context(), []app.Task{a, b})
		return err != nil
	})
	w.release(a)
	must.Become(t, "the task has ended", func() bool { return task.Exists(a.Dir, task.OutcomeFile) })
	late := w.task("exit 6")
	var refused *fault.Error
	if _, err := e.Start(t.Context(), late); !errors.As(err, &refused) || refused.Code != fault.Unavailable {
		t.Errorf("a task is started without a controller: %v, want that it is unavailable", err)
	}
	w.cluster.Up(t)
	late = w.start(e, late)
	w.release(b)
	for code, of := range map[int]app.Task{3: a, 4: b, 6: late} {
		if o := w.ended(e, of); o.ExitCode != code {
			t.Errorf("outcome %+v, want exit code %d", o, code)
		}
	}
}

func TestUnreachableAccountingLeavesUnknownTasksUnchanged(t *testing.T) {
	w := newWorld(t)
	first := w.executor()
	a := w.start(first, w.task("exit 0"))
	w.ended(first, a)
	must.OK(t, os.Remove(filepath.Join(a.Dir, task.OutcomeFile)))
	name := w.name(a)
	w.standIn("squeue", `$real "$@" | grep -v '`+name+`'; exit 0`)
	w.standIn("sacct", `echo "sacct: error: Problem talking to the database: Connection refused" >&2; exit 1`)
	second := w.executor()
	begin := time.Now()
	w.until(second, a, "unknown for long", func(now app.TaskStatus) bool {
		if now.State != app.TaskStarting {
			t.Fatalf("status %+v of a task whose status is unknown", now)
		}
		return time.Since(begin) > 2*w.options.LostAfter
	})
	b := w.start(second, w.task("exit 3"))
	all, err := second.Status(t.Context(), []app.Task{a, b})
	if err != nil || len(all) != 2 {
		t.Fatalf("statuses %+v, %v", all, err)
	}
	if o := w.ended(second, b); o.ExitCode != 3 {
		t.Errorf("outcome %+v, want exit code 3", o)
	}
}

func TestClusterWithoutAccounting(t *testing.T) {
	w := newWorld(t)
	calls := w.standIn("sacct", `echo >>$calls; echo "Slurm accounting storage is disabled" >&2; exit 1`)
	said := make(chan string, 100)
	w.options.Log = func(message string, _ ...any) { said <- message }
	w.options.Poll = 40 * time.Second // makes MinJobAge too short
	e, err := slurm.New(w.options)
	must.OK(t, err)
	defer e.Close()
	w.standIn("squeue", "exit 0")
	quick := w.executor()
	a := w.start(quick, w.task("exit 0"))
	w.over(quick, a)
	found := false
	for len(said) > 0 {
		found = found || strings.Contains(<-said, "raise MinJobAge")
	}
	if !found || w.lines(calls) != 1 {
		t.Errorf("warned: %v; sacct was called %d times, want once", found, w.lines(calls))
	}
}

// TestCancelledTaskOfQueuedArray cancels tasks for which Slurm keeps no record.
func TestCancelledTaskOfQueuedArray(t *testing.T) {
	w := newWorld(t)
	e := w.executor()
	w.cluster.Run(t, "scontrol", "update", "PartitionName=main", "State=DOWN")
	tasks := w.startAll(e, 4, "exit 0")
	w.cluster.Run(t, "scancel", number(tasks[1]))
	o := w.ended(e, tasks[1])
	if o.Cause != app.CauseStopped || !strings.Contains(o.Message, "cancelled in Slurm") {
		t.Errorf("outcome %+v, want cancelled in Slurm", o)
	}
	w.until(e, tasks[2], "waiting", func(now app.TaskStatus) bool { return strings.Contains(now.Reason, "PartitionDown") })
	must.OK(t, e.Stop(t.Context(), tasks[2]))
	if o := w.ended(e, tasks[2]); o.Cause != app.CauseStopped || o.Message != "The job was stopped." {
		t.Errorf("outcome %+v, want stopped", o)
	}
	w.cluster.Run(t, "scontrol", "update", "PartitionName=main", "State=UP")
	for _, i := range []int{0, 3} {
		w.ends(e, tasks[i], app.CauseDone)
	}
}

// other starts a foreign job and returns its ID once it runs.
func (w *world) other() string {
	w.Helper()
	id := strings.TrimSpace(w.cluster.Run(w, "sbatch", "--parsable", "--job-name=other", "--mem=64M", "--output=/dev/null", "--wrap=sleep 600"))
	w.Cleanup(func() { w.cluster.Run(w, "scancel", "--quiet", "--name=other") })
	must.Become(w.T, "the other job starts", func() bool { return w.runs(id) })
	return id
}

// runs reports whether the foreign job runs.
func (w *world) runs(other string) bool {
	w.Helper()
	return strings.Contains(strings.Join(w.jobs("other"), " "), other+":RUNNING")
}

// TestStopSparesAJobThatGotTheNumberOfTheTask makes squeue show the task's job under
// the ID of a foreign job, as if a crashed controller had reused the ID. The foreign
// job must get no signal.
func TestStopSparesAJobThatGotTheNumberOfTheTask(t *testing.T) {
	for name, repent := range map[string]bool{
		"before squeue is asked again": true, "after squeue was asked again": false,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			calls := w.standIn("squeue", `echo >>"$calls"
if [ -e "$calls.lie" ]; then
	read -r from to <"$calls.lie"
	"$real" "$@" | sed "s/\b$from\b/$to/g"
	exit
fi
exec "$real" "$@"`)
			ends := w.standIn("scancel", `"$real" "$@"; code=$?; echo >>"$calls"; exit $code`)
			e := w.executor()
			a := w.start(e, w.task(untilGo))
			w.running(e, a)
			other := w.other()
			lie := []byte(number(a) + " " + other + "\n")
			must.OK(t, os.WriteFile(calls+".lie", lie, 0o600))
			for seen := w.lines(calls); w.lines(calls) < seen+3; time.Sleep(20 * time.Millisecond) {
				w.status(e, a)
			}
			stopped := func() bool {
				must.OK(t, e.Stop(t.Context(), a))
				return w.status(e, a).State == app.TaskEnded
			}
			if !repent {
				must.Become(t, "scancel was called twice", func() bool { stopped(); return w.lines(ends) >= 2 })
			}
			must.OK(t, os.Remove(calls+".lie"))
			must.Become(t, "the task is stopped", stopped)
			if o := w.status(e, a).Outcome; o.Cause != app.CauseStopped {
				t.Errorf("outcome %+v, want it stopped", o)
			}
			if !w.runs(other) {
				t.Errorf("the other job, %s, is gone: %v", other, w.jobs("other"))
			}
		})
	}
}

// TestStopDoesNothingAboutJobsNotSeenForAWhile repeats the request without querying the
// task's status.
func TestStopDoesNothingAboutJobsNotSeenForAWhile(t *testing.T) {
	w := newWorld(t)
	calls := w.standIn("squeue", `echo >>"$calls"; exec "$real" "$@"`)
	ends := w.standIn("scancel", `echo >>"$calls"`)
	e := w.executor()
	a := w.start(e, w.task(untilGo))
	w.running(e, a)
	stop := func() {
		must.OK(t, e.Stop(t.Context(), a))
	}
	must.Become(t, "scancel is called", func() bool { stop(); return w.lines(ends) > 0 })
	must.Become(t, "nothing is asked or cancelled", func() bool {
		before := w.lines(calls) + w.lines(ends)
		for range 5 {
			stop()
			time.Sleep(w.options.Poll)
		}
		return w.lines(calls)+w.lines(ends) == before
	})
}
