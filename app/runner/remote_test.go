package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/app/job/eta"
	"molrun/app/task"
	"molrun/app/test/must"
)

// remote is an executor whose tasks have their directories in a shared folder.
type remote struct {
	app.Executor
	dir  string
	most int
}

func (r remote) AttemptsDir() string                     { return r.dir }
func (r remote) Program(context.Context) (string, error) { return "/shared/molrun", nil }
func (r remote) MaxTasks() int                           { return r.most }

// makeRemote makes the world's tasks run on other machines.
func (w *world) makeRemote(most int) {
	w.executor.bounded = false
	dir := filepath.Join(w.dir, "shared")
	must.OK(w.t, os.Mkdir(dir, 0o700))
	w.front = remote{w.executor, dir, most}
}

// remoteDirs returns the attempt directories in the shared folder.
func (w *world) remoteDirs() []string {
	found, err := filepath.Glob(filepath.Join(w.dir, "shared", "*", "*"))
	must.OK(w.t, err)
	return found
}

func remoteBubble(t *testing.T, test func(t *testing.T, w *world)) {
	bubble(t, func(t *testing.T, w *world) {
		w.makeRemote(100)
		test(t, w)
	})
}

func TestRemoteTask(t *testing.T) {
	remoteBubble(t, func(t *testing.T, w *world) {
		u := w.upload(ann, "a.fasta", "MSEQ")
		on := app.ClusterJob{Job: "7", Node: "n1", Partition: "main"}
		w.play(func(string, int) script {
			return script{runs: time.Hour, cause: app.CauseDone, log: "hello", out: map[string]string{"d/one": "1", "two": "22"}, on: on}
		})
		w.start()
		id := w.submit(ann, "a", `{"sequence":"`+string(u.ID)+`"}`)
		w.until("a", app.Running)
		if r := w.job("a"); r.Slurm == nil || *r.Slurm != on {
			t.Errorf("it runs in %+v", r.Slurm)
		}
		dirs := w.remoteDirs()
		if len(dirs) != 1 || dirs[0] != filepath.Join(w.dir, "shared", string(id), "1") {
			t.Fatalf("directories %v", dirs)
		}
		spec, err := task.ReadSpec(dirs[0])
		must.OK(t, err)
		for _, word := range spec.Steps[0].Argv {
			if strings.HasPrefix(word, w.files.JobDir(id)) {
				t.Errorf("task.json names %s, which only this machine has", word)
			}
		}
		log, err := w.Jobs.Log(t.Context(), ann, app.LogRequest{Name: "a", Limit: -1})
		must.OK(t, err)
		text, err := io.ReadAll(log)
		must.OK(t, errors.Join(err, log.Close()))
		if string(text) != "hello" {
			t.Errorf("the log of the running task is %q", text)
		}
		if r := w.finished("a"); r.Status != app.Completed || r.Slurm == nil || *r.Slurm != on {
			t.Fatalf("record %+v", r)
		}
		result := w.checkResult(id)
		if result["d/one"] != "1" || result["two"] != "22" || result["log.txt"] != "hello" {
			t.Errorf("result %v", result)
		}
		synctest.Wait()
		if left := w.remoteDirs(); len(left) > 0 {
			t.Errorf("directories %v remain", left)
		}
		if !isDir(w.path(id, "1")) {
			t.Error("the attempt's directory was not copied back")
		}
	})
}

// TestRemoteTaskWithoutAResult fetches the remaining files of a failed task.
func TestRemoteTaskWithoutAResult(t *testing.T) {
	out := map[string]string{"a": "half", "b": "", "c": ""}
	for message, s := range map[string]script{
		"exit status 3":     {runs: time.Minute, cause: app.CauseExit, exitCode: 3, log: "oh no", out: map[string]string{"a": "half"}},
		"more than 2 files": {runs: time.Minute, cause: app.CauseDone, log: "oh no", out: out},
	} {
		remoteBubble(t, func(t *testing.T, w *world) {
			w.options.MaxFiles = 2
			w.play(func(string, int) script { return s })
			w.start()
			id := w.submit(ann, "a", `{}`)
			if r := w.finished("a"); r.Failure == nil || !strings.Contains(r.Failure.Message, message) {
				t.Fatalf("record %+v, failure %+v; want %s", r.Job, r.Failure, message)
			}
			synctest.Wait()
			must.Equal(t, message+": the log", w.text(w.path(id, "1", task.LogFile)), "oh no")
			if s.cause == app.CauseExit && w.text(w.path(id, "1", "work", "out", "a")) != "half" {
				t.Error("the output is not there")
			}
			if left := w.remoteDirs(); len(left) > 0 {
				t.Errorf("%s: directories %v remain", message, left)
			}
		})
	}
}

// lateFiles is an executor whose tasks report a file that is not visible yet, as on a
// network file system.
type lateFiles struct{ remote }

func (l lateFiles) Status(ctx context.Context, tasks []app.Task) ([]app.TaskStatus, error) {
	all, err := l.remote.Status(ctx, tasks)
	for _, s := range all {
		if s.Outcome != nil {
			s.Outcome.OutputFiles, s.Outcome.OutputBytes = 2, 5
		}
	}
	return all, err
}

func TestResultWaitsForFilesThatAppearLate(t *testing.T) {
	remoteBubble(t, func(t *testing.T, w *world) {
		w.play(func(string, int) script {
			return script{runs: time.Second, cause: app.CauseDone, out: map[string]string{"early": "1"}}
		})
		w.front = lateFiles{w.front.(remote)}
		w.start()
		id := w.submit(ann, "a", `{}`)
		w.until("a", app.Running)
		time.Sleep(30 * time.Second)
		if s := w.job("a").Status; s != app.Running {
			t.Fatalf("status %s though a file is not visible yet", s)
		}
		must.OK(t, os.WriteFile(filepath.Join(w.remoteDirs()[0], "work", "out", "late"), []byte("2345"), 0o600))
		if r := w.finished("a"); r.Status != app.Completed {
			t.Fatalf("record %+v", r.Job)
		}
		must.Equal(t, "the late file", w.checkResult(id)["late"], "2345")
	})
}

func TestClusterGetsNoMoreTasksThanItAccepts(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.makeRemote(3)
		w.play(func(string, int) script { return script{waits: time.Minute, runs: time.Hour, cause: app.CauseDone} })
		w.start()
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			w.submit(ann, name, `{}`)
		}
		time.Sleep(30 * time.Minute)
		must.Equal(t, "remote tasks", len(w.remoteDirs()), 3)
		waiting := 0
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			r := w.job(name)
			if r.Status == app.Queued {
				waiting++
				if !strings.Contains(r.StatusReason, "this service has reached its limit of 3 jobs on the cluster") || r.Queue.BlockedBy != eta.Slurm || r.Queue.Position == 0 {
					t.Errorf("%s waits for the reason %q: %+v", name, r.StatusReason, r.Queue)
				}
			}
		}
		must.Equal(t, "jobs are queued", waiting, 2)
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			if r := w.finished(name); r.Status != app.Completed {
				t.Errorf("%s: %+v", name, r.Job)
			}
		}
	})
}

func TestFullClusterIsRefilledInBulkOrEveryMinute(t *testing.T) {
	t.Parallel()
	const most = 100
	for _, test := range []struct {
		every       time.Duration // interval between ends of jobs
		least, more int           // bounds on how often jobs are started after the first time
	}{
		{2 * time.Second, 8, 14},   // a tenth at a time, within 200 s
		{20 * time.Second, 27, 40}, // every minute for 2,000 s
	} {
		t.Run(test.every.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.makeRemote(most)
				w.play(func(name string, _ int) script {
					n, err := strconv.Atoi(name)
					must.OK(t, err)
					return script{runs: time.Hour + time.Duration(n)*test.every, cause: app.CauseDone}
				})
				w.start()
				for i := range 2 * most {
					w.submit(ann, strconv.Itoa(i), `{}`)
				}
				time.Sleep(time.Hour)
				times, before := 0, w.executor.count()
				for before < 2*most {
					time.Sleep(time.Second)
					synctest.Wait() // jobs of one refill start at the same moment, some after this goroutine
					if now := w.executor.count(); now > before {
						times, before = times+1, now
					}
				}
				if times < test.least || times > test.more {
					t.Errorf("jobs were started %d times, want %d to %d", times, test.least, test.more)
				}
			})
		})
	}
}

func TestUnusedRemoteDirectoriesAreSwept(t *testing.T) {
	remoteBubble(t, func(t *testing.T, w *world) {
		w.play(func(string, int) script { return script{runs: 24 * time.Hour, cause: app.CauseDone} })
		shared := filepath.Join(w.dir, "shared")
		gone := sortid.ID{1, 2, 3}.String()
		must.OK(t, os.MkdirAll(filepath.Join(shared, gone, "1", "work"), 0o700))
		foreign := filepath.Join(shared, "of somebody else")
		must.OK(t, os.MkdirAll(foreign, 0o700))
		stop := w.start()
		id := w.submit(ann, "a", `{}`)
		w.until("a", app.Running)
		stop()
		w.start()
		time.Sleep(2 * time.Hour)
		if isDir(filepath.Join(shared, gone)) {
			t.Error("the directory of a job that does not exist is still there")
		}
		if !isDir(foreign) || !isDir(filepath.Join(shared, string(id), "1")) {
			t.Error("a directory was removed that is in use, or not ours")
		}
	})
}

func TestJobsSayThatTheClusterHasNotReportedYet(t *testing.T) {
	remoteBubble(t, func(t *testing.T, w *world) {
		w.play(func(string, int) script {
			return script{waits: time.Hour, why: "the node is being cleaned", cause: app.CauseDone}
		})
		stop := w.start()
		w.submit(ann, "claimed", `{}`)
		time.Sleep(time.Minute)
		stop()
		w.executor.reach(false)
		w.start()
		w.submit(ann, "queued", `{}`)
		for _, want := range []string{"waiting for the cluster to report", "the node is being cleaned"} {
			time.Sleep(time.Minute)
			for _, name := range []string{"claimed", "queued"} {
				if r := w.job(name); r.Status != app.Queued || !strings.HasPrefix(r.StatusReason, want) {
					t.Errorf("%s is %s: %q, want %q", name, r.Status, r.StatusReason, want)
				}
			}
			w.executor.reach(true)
		}
	})
}

func TestQueuedJobsSayThatTheClusterDoesNotAnswer(t *testing.T) {
	remoteBubble(t, func(t *testing.T, w *world) {
		w.play(func(name string, _ int) script {
			if name == "runs" {
				return script{runs: 3 * time.Hour, cause: app.CauseDone}
			}
			return script{waits: 2 * time.Hour, why: "the node is being cleaned", cause: app.CauseDone}
		})
		w.start()
		w.submit(ann, "runs", `{}`)
		w.submit(ann, "waits", `{}`)
		for i, want := range []string{"the node is being cleaned", "the cluster does not respond", "the node is being cleaned"} {
			w.executor.reach(i != 1)
			time.Sleep(time.Minute)
			if r := w.job("waits"); r.Status != app.Queued || !strings.HasPrefix(r.StatusReason, want) {
				t.Errorf("%s: %q, want %q", r.Status, r.StatusReason, want)
			}
			if r := w.job("runs"); r.Status != app.Running || r.StatusReason != "" {
				t.Errorf("the running job is %s: %q", r.Status, r.StatusReason)
			}
		}
	})
}

func TestJobsThatAClusterDoesNotTakeNowSayWhyAndComeBackSoon(t *testing.T) {
	remoteBubble(t, func(t *testing.T, w *world) {
		var full atomic.Bool
		full.Store(true)
		w.play(func(string, int) script {
			if full.Load() {
				return script{refuses: fault.Errorf(fault.Unavailable, "this account has reached its limit of jobs")}
			}
			return script{runs: time.Hour, cause: app.CauseDone}
		})
		w.start()
		w.submit(ann, "a", `{}`)
		time.Sleep(time.Hour)
		if r := w.job("a"); r.Status != app.Queued || r.StatusReason != "waiting for the cluster: this account has reached its limit of jobs" || r.Queue != (eta.Queue{BlockedBy: eta.Slurm}) {
			t.Errorf("%s: %q %+v", r.Status, r.StatusReason, r.Queue)
		}
		full.Store(false)
		time.Sleep(20 * time.Second)
		if r := w.job("a"); r.Status != app.Running || r.Attempts != 1 {
			t.Errorf("%s: %q in attempt %d", r.Status, r.StatusReason, r.Attempts)
		}
	})
}

// claimedMeanwhile claims a job and creates its directory just after the claims were
// read.
type claimedMeanwhile struct {
	Jobs
	makeDir func()
}

func (j claimedMeanwhile) Claims(ctx context.Context) ([]app.Claimed, error) {
	defer j.makeDir()
	return j.Jobs.Claims(ctx)
}

func TestCleanUpKeepsDirectoriesOfNewClaims(t *testing.T) {
	w := newWorld(t)
	job := filepath.Join(w.dir, sortid.ID{1, 2, 3}.String())
	first, second := filepath.Join(job, "1"), filepath.Join(job, "2")
	must.OK(t, os.MkdirAll(first, 0o700))
	jobs := claimedMeanwhile{w.jobs, func() { must.OK(t, os.Mkdir(second, 0o700)) }}
	must.OK(t, cleanUpRemote(t.Context(), jobs, w.dir))
	if isDir(first) || !isDir(second) {
		t.Errorf("the last attempt is there: %v, the new one: %v", isDir(first), isDir(second))
	}
}

func TestJobsWaitForAFolderThatIsNotMounted(t *testing.T) {
	remoteBubble(t, func(t *testing.T, w *world) {
		w.play(func(string, int) script { return script{runs: time.Minute, cause: app.CauseDone} })
		shared := filepath.Join(w.dir, "shared")
		must.OK(t, os.Remove(shared))
		w.start()
		w.submit(ann, "a", `{}`)
		time.Sleep(2 * time.Hour)
		if r := w.job("a"); r.Status != app.Queued || !strings.Contains(r.StatusReason, "waiting for the cluster") {
			t.Fatalf("status %s, %s", r.Status, r.StatusReason)
		}
		must.OK(t, os.Mkdir(shared, 0o700))
		if r := w.finished("a"); r.Status != app.Completed || r.Attempts != 1 {
			t.Errorf("record %+v, failure %+v", r.Job, r.Failure)
		}
	})
}

// together is an executor whose tasks start only once all have arrived.
type together struct {
	remote
	count   int
	arrived chan struct{}
	all     chan struct{}
}

func (g together) Start(ctx context.Context, t app.Task) (app.Handle, error) {
	g.arrived <- struct{}{}
	if len(g.arrived) == g.count {
		close(g.all)
	}
	select {
	case <-g.all:
		return g.remote.Start(ctx, t)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// TestTasksOfAnArrayAreStartedTogether checks that a cluster receives enough tasks at
// once to batch them into an array.
func TestTasksOfAnArrayAreStartedTogether(t *testing.T) {
	t.Parallel()
	const count = 1000
	bubble(t, func(t *testing.T, w *world) {
		w.makeRemote(2 * count)
		w.play(func(string, int) script { return script{runs: time.Second, cause: app.CauseDone} })
		w.front = together{w.front.(remote), count, make(chan struct{}, 10*count), make(chan struct{})}
		for i := range count {
			w.submit(ann, fmt.Sprintf("job-%d", i), `{}`)
		}
		w.start()
		if r := w.finished("job-0"); r.Status != app.Completed || r.Attempts != 1 {
			t.Errorf("record %+v, failure %+v", r.Job, r.Failure)
		}
	})
}

// If the folder shared with the cluster has errors, the job waits for it and reports so.
// Errors of other files fail the job.
func TestJobsWaitForTheSharedFolder(t *testing.T) {
	for _, tt := range []struct {
		name   string
		path   string // relative to w.dir; "" if unknown
		errno  syscall.Errno
		reason string // "" means that the job fails
	}{
		{"the server is away", "shared/x/1", syscall.EIO, "waiting for the cluster: The folder shared with the cluster is not usable: input/output error"},
		{"stale, without a path", "", syscall.ESTALE, "waiting for the cluster: The folder shared with the cluster is not usable: stale file handle"},
		{"full", "shared/x/1", syscall.ENOSPC, "waiting for space in the folder shared with the cluster"},
		{"this machine's disk is full", "../uploads/x", syscall.ENOSPC, "waiting for space on the server's disk"},
		{"this machine's disk is broken", "../uploads/x", syscall.EIO, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			remoteBubble(t, func(t *testing.T, w *world) {
				var works atomic.Bool
				w.play(func(string, int) script {
					if works.Load() {
						return script{cause: app.CauseDone}
					}
					err := &fs.PathError{Op: "open", Path: filepath.Join(w.dir, tt.path), Err: tt.errno}
					if tt.path == "" {
						err.Path = "relative"
					}
					return script{refuses: fmt.Errorf("write the list: %w", err)}
				})
				w.start()
				w.submit(ann, "a", `{}`)
				time.Sleep(time.Minute)
				r := w.job("a")
				if tt.reason == "" {
					if r.Failure == nil || r.Failure.Code != app.FailedCannotStart {
						t.Errorf("%s: %+v", r.Status, r.Failure)
					}
					return
				}
				if r.Status != app.Queued || r.StatusReason != tt.reason {
					t.Errorf("%s: %q, want %q", r.Status, r.StatusReason, tt.reason)
				}
				works.Store(true)
				if r := w.finished("a"); r.Status != app.Completed || r.Attempts != 1 {
					t.Errorf("then it is %s in attempt %d", r.Status, r.Attempts)
				}
			})
		})
	}
}
