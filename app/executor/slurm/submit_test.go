package slurm_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/executor/slurm"
	"molrun/app/task"
	"molrun/app/task/process"
	"molrun/app/test/must"
)

func TestJobInheritsNothingFromTheService(t *testing.T) {
	w := newWorld(t)
	const secret = "hunter2-of-the-service"
	for name, value := range map[string]string{
		"MOLRUN_SECRET": secret, "SBATCH_EXPORT": "ALL", "SLURM_EXPORT_ENV": "ALL", "SBATCH_COMMENT": secret,
		"SBATCH_JOB_NAME": secret, "SQUEUE_FORMAT": "%i", "SLURM_TIME_FORMAT": "relative", "SACCT_FORMAT": "JobID",
	} {
		t.Setenv(name, value)
	}
	w.options.Path = onlySlurm(t)
	calls := w.standIn("sbatch", `/bin/sed "2i /usr/bin/env >'$calls.job'" >$calls.script; { /usr/bin/env; echo "$@"; } >>$calls; exec $real "$@" <$calls.script`)
	e := w.executor()
	a := w.start(e, w.task("env > out/env; "+untilGo))
	w.running(e, a)
	run, err := task.ReadRun(a.Dir)
	must.OK(t, err)
	shim := w.text(filepath.Join("/proc", strconv.Itoa(run.PID), "environ"))
	job := w.cluster.Run(t, "scontrol", "show", "job", "--details", number(a))
	w.release(a)
	w.ends(e, a, app.CauseDone)
	for what, text := range map[string]string{
		"sbatch": w.text(calls), "its script": w.text(calls + ".script"), "the job": job, "its environment": w.text(calls + ".job"),
		"molrun task": shim, "the program": w.text(w.out(a, "env")),
	} {
		if strings.Contains(text, secret) {
			t.Errorf("%s contains the secret:\n%s", what, text)
		}
	}
	for _, variable := range strings.Split(strings.TrimRight(shim, "\x00"), "\x00") {
		if name, _, _ := strings.Cut(variable, "="); name != "PATH" && name != process.TokenVariable {
			t.Errorf("molrun task has the variable %s", variable)
		}
	}
	for variable := range strings.Lines(w.text(calls + ".job")) {
		if name, _, _ := strings.Cut(variable, "="); slices.Contains([]string{"HOME", "LOGNAME", "MAIL", "SHELL", "USER"}, name) {
			t.Errorf("Slurm has started a login shell for the job, it has the variable %s", variable)
		}
	}
}

// onlySlurm returns a folder that contains only Slurm's commands, as in an installation
// below /opt.
func onlySlurm(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range slurm.Commands {
		path, err := exec.LookPath(name)
		must.OK(t, err)
		must.OK(t, os.Symlink(path, filepath.Join(dir, name)))
	}
	return dir
}

// number returns the job ID in the task's handle.
func number(t app.Task) string {
	_, rest, _ := strings.Cut(string(t.Handle), `"job":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

func TestJobsGetTheirGrantedGPUs(t *testing.T) {
	w := newWorld(t)
	e := w.executor()
	const script = `printf %s "$CUDA_VISIBLE_DEVICES" > out/gpus`
	with, without := w.task(script), w.task(script)
	with.Needs.GPUs = 2
	with, without = w.start(e, with), w.start(e, without)
	for _, tt := range []struct {
		task app.Task
		want string
	}{{with, "0,1"}, {without, ""}} {
		w.ends(e, tt.task, app.CauseDone)
		must.Equal(t, fmt.Sprintf("with %d GPUs: devices", tt.task.Needs.GPUs), w.text(w.out(tt.task, "gpus")), tt.want)
	}
}

func TestSlurmLimitsExceedTheTasksOwn(t *testing.T) {
	w := newWorld(t)
	e := w.executor()
	a := w.task(untilGo)
	a.Needs, a.Limit = placement.Resources{CPUs: 2, MemoryBytes: 100 << 20}, 10*time.Minute
	a.Placement = placement.Placement{Partition: "main", Account: "test", Options: []string{"--nice=7"}}
	a = w.start(e, a)
	w.running(e, a)
	job := w.cluster.Run(t, "scontrol", "show", "job", number(a))
	for _, want := range []string{
		"TimeLimit=00:12:00", "NumCPUs=2", "MinMemoryNode=164M", "Requeue=0", "Partition=main", "Account=test", "Nice=7",
		"StdOut=/dev/null", "WorkDir=" + w.options.SharedDir, "JobName=molrun-" + a.Token,
	} {
		must.Contain(t, "the job", job, want)
	}
	w.release(a)
	w.ended(e, a)
}

func TestTimeLimitStaysWithinThePartition(t *testing.T) {
	w := newWorld(t)
	e := w.executor()
	must.Become(t, "the cluster's nodes are known", func() bool { _, known := e.Largest(placement.Placement{}); return known })
	a := w.task(untilGo)
	a.Limit = 400 * 24 * time.Hour
	a = w.start(e, a)
	w.running(e, a)
	if limit := w.cluster.Run(t, "squeue", "--noheader", "--name="+w.name(a), "--format=%l"); strings.TrimSpace(limit) != "7-00:00:00" {
		t.Errorf("the job may run for %s", limit)
	}
	w.release(a)
	w.ended(e, a)
}

func TestRefusedJobIsNotStarted(t *testing.T) {
	tests := []struct {
		name string
		want string
		set  func(*app.Task)
	}{
		{"partition", "invalid partition specified: nowhere", func(a *app.Task) { a.Placement.Partition = "nowhere" }},
		{"memory", "Requested node configuration is not available", func(a *app.Task) { a.Needs.MemoryBytes = 1 << 50 }},
		{"GPUs", "Requested node configuration is not available", func(a *app.Task) { a.Needs.GPUs = 100 }},
	}
	w := newWorld(t)
	e := w.executor()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := w.task("exit 0")
			tt.set(&a)
			_, err := e.Start(t.Context(), a)
			var refused *fault.Error
			if !errors.As(err, &refused) || refused.Code != fault.Invalid || !strings.Contains(refused.Message, tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if now := w.status(e, a); now.State != app.TaskLost {
				t.Errorf("status %+v, want lost", now)
			}
		})
	}
}

// Jobs wait until an administrator corrects the account.
func TestJobsWaitForTheirAccount(t *testing.T) {
	w := newWorld(t)
	w.standIn("sbatch", `echo "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified" >&2; exit 1`)
	_, err := w.executor().Start(t.Context(), w.task("exit 0"))
	if !errors.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "slurm.account") {
		t.Errorf("error %v", err)
	}
}

// TestSubmissionOfUnknownOutcome has sbatch fail without a clear result. Whether or not
// the submission took effect, the task must run exactly once.
func TestSubmissionOfUnknownOutcome(t *testing.T) {
	const silent = `echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2; exit 1`
	tests := []struct {
		name   string
		sbatch string
		again  int
	}{
		{"it took effect", `echo "$*" >>$calls; $real "$@" >/dev/null; ` + silent, 0},
		{"it did not", `echo "$*" >>$calls; [ $(wc -l <$calls) -gt 1 ] && exec $real "$@"; ` + silent, 1},
		{"it took effect after sbatch was killed", `echo "$*" >>$calls; $real "$@" >/dev/null; kill -9 $$`, 0},
		{"it takes effect twice", `echo "$*" >>$calls; cat >$calls.in; $real "$@" <$calls.in >/dev/null; exec $real "$@" <$calls.in`, 0},
		{"munge is down", `echo "$*" >>$calls; [ $(wc -l <$calls) -gt 1 ] && exec $real "$@"
			echo "sbatch: error: Batch job submission failed: Invalid authentication credential" >&2; exit 1`, 1},
	}
	for _, tt := range tests {
		for _, rows := range []int{1, 5} {
			t.Run(tt.name+", "+strconv.Itoa(rows)+" at once", func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				calls := w.standIn("sbatch", tt.sbatch)
				e := w.executor()
				tasks := w.startAll(e, rows, "echo once >> out/count")
				for _, a := range tasks {
					w.ends(e, a, app.CauseDone)
				}
				w.untilQuiet(tasks)
				for _, a := range tasks {
					must.Equal(t, "the program wrote", w.text(w.out(a, "count")), "once\n")
				}
				made := strings.Split(strings.TrimSpace(w.text(calls)), "\n")
				n := len(made)
				slices.Sort(made)
				// On a busy machine, the tasks may be gathered into more than one
				// submission.
				if want := len(slices.Compact(made)) + tt.again; n != want {
					t.Errorf("sbatch was called %d times, want %d:\n%s", n, want, w.text(calls))
				}
			})
		}
	}
}

// TestArrayOfUnknownOutcomeIsSubmittedInParts has Slurm reject an array as too large when
// it is submitted again.
func TestArrayOfUnknownOutcomeIsSubmittedInParts(t *testing.T) {
	for name, refusal := range map[string]string{
		"longer than any array": "sbatch: error: Batch job submission failed: Invalid job array specification",
		"the account is full":   "sbatch: error: AssocMaxSubmitJobLimit",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			calls := w.standIn("sbatch", `echo >>$calls
if [ $(wc -l <$calls) = 1 ]; then
	echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
	exit 1
fi
case "$*" in *--array=1-[345]*) echo "`+refusal+`" >&2; exit 1;; esac
exec $real "$@"`)
			e := w.executor()
			tasks := w.startAll(e, 5, "echo once >> out/count")
			for _, a := range tasks {
				if o := w.ended(e, a); o.Cause != app.CauseDone || w.text(w.out(a, "count")) != "once\n" {
					t.Errorf("outcome %+v", o)
				}
			}
			must.Equal(t, "sbatch was called", w.lines(calls), 5)
		})
	}
}

// startAll starts tasks concurrently.
func (w *world) startAll(e *slurm.Executor, n int, script string) []app.Task {
	w.Helper()
	tasks := make([]app.Task, n)
	for i := range tasks {
		tasks[i] = w.task(script)
	}
	if _, refused := w.startEach(e, tasks); len(refused) > 0 {
		w.Error(errors.Join(refused...))
	}
	w.Cleanup(func() { w.cancel(tasks[0]) })
	return tasks
}

// untilQuiet waits until Slurm has no job of these tasks that could still run.
func (w *world) untilQuiet(tasks []app.Task) {
	w.Helper()
	must.Become(w.T, "no job is left", func() bool {
		for _, job := range w.jobs(w.name(tasks[0])) {
			if !strings.HasSuffix(job, ":COMPLETED") && !strings.HasSuffix(job, ":CANCELLED") && !strings.HasSuffix(job, ":FAILED") {
				return false
			}
		}
		return true
	})
}

// untilAccounted waits until accounting lists the given number of ended jobs with the
// name.
func (w *world) untilAccounted(name string, ends int) {
	w.Helper()
	must.Become(w.T, "accounting knows the ends", func() bool {
		out := w.cluster.Run(w, "sacct", "--noheader", "--allocations", "--parsable2", "--name="+name, "--format=State")
		return strings.Count(out, "FAILED")+strings.Count(out, "COMPLETED")+strings.Count(out, "CANCELLED") == ends
	})
}

func TestAcknowledgedJobThatVanishesIsLost(t *testing.T) {
	w := newWorld(t)
	w.standIn("sbatch", "cat >/dev/null; echo 999999")
	e := w.executor()
	a := w.start(e, w.task("echo > out/ran"))
	w.lost(e, a, "999999")
	if _, err := os.Stat(w.out(a, "ran")); err == nil {
		t.Error("it ran")
	}
}

func TestInterruptedStartIsRecovered(t *testing.T) {
	w := newWorld(t)
	calls := w.standIn("sbatch", `echo >>$calls; while [ ! -e $calls.go ]; do sleep 0.05; done; exec $real "$@"`)
	first := w.executor()
	a := w.task("echo once >> out/count")
	failed := make(chan error)
	go func() {
		_, err := first.Start(t.Context(), a)
		failed <- err
	}()
	must.Become(t, "sbatch is called", func() bool { return w.lines(calls) == 1 })
	must.OK(t, first.Close()) // sbatch is killed
	if err := <-failed; err != nil {
		t.Errorf("error %v, although the task may be running", err)
	}
	must.OK(t, os.WriteFile(calls+".go", nil, 0o600))
	second := w.executor()
	if o := w.ended(second, a); o.Cause != app.CauseDone || w.text(w.out(a, "count")) != "once\n" {
		t.Errorf("outcome %+v", o)
	}
}

// Administrators see who owns a job, regardless of its name, and users see its Slurm job
// ID.
func TestJobsAreTraced(t *testing.T) {
	w := newWorld(t)
	e := w.executor()
	a := w.task(untilGo)
	a.Owner = app.Owner{Organization: "lab'; exit 1; '", Email: "ann@lab.example", Job: "fold 7, --hold | %j"}
	rows := w.rows(untilGo)
	rows[0].Owner = app.Owner{Organization: "lab", Email: "ann@lab.example", Job: "fam-1", Batch: "fam"}
	a = w.start(e, a)
	w.fly(e, rows)
	for _, tt := range []struct {
		task    app.Task
		title   string
		comment string
	}{
		{a, "molrun-fold_7__--hold____j:" + a.Token, "user=ann@lab.example organization=lab__ exit 1_ _ job=fold_7__--hold____j"},
		{rows[0], "molrun-fam:" + filepath.Base(rows[0].Worker), "user=ann@lab.example organization=lab batch=fam"},
	} {
		now := w.running(e, tt.task)
		if now.Cluster.Job == "" || !strings.HasPrefix(now.Cluster.Node, "c") || now.Cluster.Partition != "main" {
			t.Errorf("status %+v, want Slurm's number, node and partition", now)
			continue
		}
		job := w.cluster.Run(t, "scontrol", "show", "job", now.Cluster.Job)
		if !strings.Contains(job, "JobName="+tt.title+"\n") || !strings.Contains(job, "Comment="+tt.comment+" \n") {
			t.Errorf("the job lacks its name or comment:\n%s", job)
		}
	}
	must.OK(t, e.Stop(t.Context(), a))
	w.ends(e, a, app.CauseStopped)
	w.release(rows[0])
	w.ends(e, rows[0], app.CauseDone)
	w.untilAccounted("molrun-fold_7__--hold____j:"+a.Token, 1)
	must.OK(t, e.Close())
	must.OK(t, os.Remove(filepath.Join(a.Dir, task.OutcomeFile)))
	w.standIn("squeue", "exit 0")
	if now := w.over(w.executor(), a); now.Cluster.Job == "" {
		t.Errorf("accounting does not know the job: %+v", now)
	}
}
