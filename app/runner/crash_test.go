package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
	"molrun/app/runner/schedule"
	"molrun/app/task"
	"molrun/app/test/must"
)

// crash kills a runner at its n-th call of the service or the executor: before the call,
// or after it and before the response. From then on the runner's actions have no effect,
// as if its process had died.
type crash struct {
	Jobs
	*scripted

	at    int
	after bool
	kill  func()

	mu    sync.Mutex
	calls int
	dead  bool
	where string
}

var errDead = errors.New("this process is dead")

// around makes one call, unless the runner is dead.
func (c *crash) around(what string, call func() error) error {
	if c.hit(what, false) {
		return errDead
	}
	err := call()
	if c.hit(what, true) {
		return errDead
	}
	return err
}

// hit reports whether the runner is dead, or dies now.
func (c *crash) hit(what string, after bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !after {
		c.calls++
	}
	if !c.dead && c.calls == c.at && after == c.after && (!after || what == c.where) {
		c.dead = true
		c.kill()
	}
	if c.calls == c.at && !after {
		c.where = what
	}
	return c.dead
}

// jobsAtCrash and executorAtCrash wrap the service and the executor that the runner
// calls.
type (
	jobsAtCrash     struct{ *crash }
	executorAtCrash struct{ *crash }
)

// through makes one call that returns a value.
func through[T any](c *crash, what string, call func() (T, error)) (v T, err error) {
	err = c.around(what, func() error { v, err = call(); return err })
	return v, err
}

func (c jobsAtCrash) Claims(ctx context.Context) ([]app.Claimed, error) {
	return through(c.crash, "Claims", func() ([]app.Claimed, error) { return c.Jobs.Claims(ctx) })
}

func (c jobsAtCrash) Active(ctx context.Context) ([]*app.Job, error) {
	return through(c.crash, "Active", func() ([]*app.Job, error) { return c.Jobs.Active(ctx) })
}

func (c jobsAtCrash) Claim(ctx context.Context, id app.JobID, leased placement.Devices, p app.ClaimLimit) (j *app.Job, rows []*app.Job, err error) {
	err = c.around("Claim", func() (err error) { j, rows, err = c.Jobs.Claim(ctx, id, leased, p); return err })
	return j, rows, err
}

func (c jobsAtCrash) SetHandle(ctx context.Context, id app.JobID, attempt int, h app.Handle) error {
	return c.around("SetHandle", func() error { return c.Jobs.SetHandle(ctx, id, attempt, h) })
}

func (c jobsAtCrash) Started(ctx context.Context, id app.JobID, attempt int, at time.Time, on app.ClusterJob) error {
	return c.around("Started", func() error { return c.Jobs.Started(ctx, id, attempt, at, on) })
}

func (c jobsAtCrash) Finish(ctx context.Context, id app.JobID, attempt int, e app.Ending) error {
	return c.around("Finish", func() error { return c.Jobs.Finish(ctx, id, attempt, e) })
}

func (c jobsAtCrash) FinalRecord(j *app.Job, e app.Ending) (app.Record, error) {
	return through(c.crash, "FinalRecord", func() (app.Record, error) { return c.Jobs.FinalRecord(j, e) })
}

func (c jobsAtCrash) AlgorithmOf(ctx context.Context, j *app.Job) (*algorithm.File, error) {
	return through(c.crash, "AlgorithmOf", func() (*algorithm.File, error) { return c.Jobs.AlgorithmOf(ctx, j) })
}

func (c jobsAtCrash) PlacementOf(ctx context.Context, j *app.Job) (placement.Placement, error) {
	return through(c.crash, "PlacementOf", func() (placement.Placement, error) { return c.Jobs.PlacementOf(ctx, j) })
}

func (c jobsAtCrash) InputPath(src app.Reference) (string, error) {
	return through(c.crash, "InputPath", func() (string, error) { return c.Jobs.InputPath(src) })
}

func (c executorAtCrash) Start(ctx context.Context, t app.Task) (app.Handle, error) {
	return through(c.crash, "Start", func() (app.Handle, error) { return c.scripted.Start(ctx, t) })
}

func (c executorAtCrash) Status(ctx context.Context, tasks []app.Task) ([]app.TaskStatus, error) {
	return through(c.crash, "Status", func() ([]app.TaskStatus, error) { return c.scripted.Status(ctx, tasks) })
}

func (c executorAtCrash) Stop(ctx context.Context, t app.Task) error {
	return c.around("Stop", func() error { return c.scripted.Stop(ctx, t) })
}

// startToCrash starts a runner that dies at call number at, and returns a function that
// waits for its end.
func (w *world) startToCrash(at int, after bool) (c *crash, wait func()) {
	ctx, cancel := context.WithCancel(context.Background())
	c = &crash{Jobs: w.jobs, scripted: w.executor, at: at, after: after, kill: cancel}
	front := app.Executor(executorAtCrash{c})
	if r, ok := w.front.(remote); ok {
		r.Executor = front
		front = r
	}
	r := New(jobsAtCrash{c}, w.files, []app.Executor{front}, w.options)
	done := make(chan struct{})
	go func() { defer close(done); _ = r.Run(ctx) }()
	wait = func() { cancel(); <-done }
	w.t.Cleanup(wait)
	return c, wait
}

// TestRestartAtEveryStep has a runner die at each of its calls in turn, and the next one
// finish the jobs. One job is completed, one fails, the first attempts of others are
// lost, and one leaves an invalid output. Failed work is removed at once, or retained.
func TestRestartAtEveryStep(t *testing.T) {
	t.Parallel()
	restartEverywhere(t, restartAt, func(w *world) { w.options.KeepFailed, w.options.MaxFiles = 0, 3 })
}

func TestRestartAtEveryStepOfRemoteTasks(t *testing.T) {
	t.Parallel()
	restartEverywhere(t, restartAt, func(w *world) {
		w.makeRemote(100)
		w.options.MaxFiles = 3
	})
}

// restartEverywhere calls restartAt for each call at which a runner can die, until the
// last.
func restartEverywhere(t *testing.T, restartAt func(t *testing.T, w *world, at int, after bool) (over bool), prepare func(*world)) {
	for _, after := range []bool{false, true} {
		for at, over := 1, false; !over; at++ {
			bubble(t, func(t *testing.T, w *world) {
				prepare(w)
				over = restartAt(t, w, at, after)
			})
			if t.Failed() {
				t.Fatalf("the first runner died at call %d (after it: %v)", at, after)
			}
		}
	}
}

func restartAt(t *testing.T, w *world, at int, after bool) (over bool) {
	u := w.upload(ann, "a.fasta", "MSEQ")
	w.play(func(name string, attempt int) script {
		s := script{runs: 40 * time.Millisecond, cause: app.CauseDone, out: map[string]string{"by": fmt.Sprint(attempt), fmt.Sprint("from-", attempt): ""}}
		switch {
		case (name == "lost" || name == "fails") && attempt == 1:
			s.cause = ""
		case name == "fails":
			s.cause = app.CauseExit
		case name == "too much":
			s.out = map[string]string{"a": "", "b": "", "c": "", "d": ""}
		}
		return s
	})
	ids := map[string]app.JobID{}
	names := []string{"good", "lost", "fails"}
	if w.options.MaxFiles > 0 {
		names = append(names, "too much")
	}
	for _, name := range names {
		ids[name] = w.submit(ann, name, fmt.Sprintf(`{"gpus":2,"sequence":%q}`, u.ID)) // so that they run one after another
	}
	c, wait := w.startToCrash(at, after)
	time.Sleep(time.Minute)
	wait()
	w.start()
	for name, id := range ids {
		r := w.finished(name)
		wantStatus, wantTasks := app.Completed, 1
		if name == "lost" || name == "fails" {
			wantTasks = 2
		}
		if name == "fails" || name == "too much" {
			wantStatus = app.Failed
		}
		if r.Status != wantStatus || r.Attempts != wantTasks || w.executor.started(id) != wantTasks {
			t.Errorf("%s: %s after %d attempts and %d tasks, failure %+v", name, r.Status, r.Attempts, w.executor.started(id), r.Failure)
		}
		if r.Status == app.Completed {
			got := w.checkResult(id)
			if _, first := got["from-1"]; got["by"] != fmt.Sprint(wantTasks) || !first {
				t.Errorf("%s: the result is of attempt %q, which found what the first had left: %v", name, got["by"], first)
			}
		}
	}
	synctest.Wait() // files are removed after the end is recorded
	if last := w.path(ids["fails"], "2", task.WorkDir); isDir(last) != (w.options.KeepFailed > 0) {
		t.Errorf("the work of the last attempt is there: %v, and is to be kept for %v", isDir(last), w.options.KeepFailed)
	}
	for _, name := range []string{"fails", "too much"} {
		if w.options.KeepFailed == 0 && isDir(w.path(ids[name], "1", task.WorkDir)) {
			t.Errorf("the work of the first attempt of %s is left", name)
		}
	}
	if notes, err := os.ReadDir(w.options.RetainedDir); err != nil || (len(notes) > 0) != (w.options.KeepFailed > 0) {
		t.Errorf("notes %v, %v, of what is to be kept for %v", notes, err, w.options.KeepFailed)
	}
	if active, err := w.Runs.Active(t.Context()); err != nil || len(active) != 0 {
		t.Errorf("still claimed: %v, %v", active, err)
	}
	if left := w.remoteDirs(); len(left) > 0 {
		t.Errorf("directories %v are left", left)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls < at
}

func TestRestartFindsTheStateOfTasks(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		scripts := map[string]script{
			"runs on":    {runs: time.Hour, cause: app.CauseDone},
			"ended":      {runs: time.Minute, cause: app.CauseDone},
			"failed":     {runs: time.Minute, cause: app.CauseExit},
			"stopped":    {runs: 24 * time.Hour, cause: app.CauseDone},
			"lost twice": {runs: time.Minute},
		}
		w.play(func(name string, _ int) script { return scripts[name] })
		w.executor.capacity.CPUs = len(scripts) + 1 // one more task would always fit
		stop := w.start()
		ids := map[string]app.JobID{}
		for name := range scripts {
			ids[name] = w.submit(ann, name, `{}`)
			w.until(name, app.Running)
		}
		stop()
		_, err := w.Jobs.Cancel(t.Context(), ann, "stopped")
		must.OK(t, err)
		time.Sleep(30 * time.Minute)
		w.executor.reach(false)
		waits := w.submit(ann, "waits", `{"cpus":4}`)
		next := w.submit(bob, "next", `{}`)
		scripts["waits"], scripts["next"] = script{cause: app.CauseDone}, script{cause: app.CauseDone}
		w.start()
		time.Sleep(time.Hour)
		must.Equal(t, "jobs were started before the running tasks were known", w.executor.started(waits)+w.executor.started(next), 0)
		w.executor.reach(true)
		want := map[string]app.Status{
			"runs on": app.Completed, "ended": app.Completed, "failed": app.Failed,
			"stopped": app.Failed, "lost twice": app.Failed, "waits": app.Completed, "next": app.Completed,
		}
		for name, status := range want {
			r := w.finished(name)
			if r.Status != status {
				t.Errorf("%s: %s, failure %+v", name, r.Status, r.Failure)
			}
		}
		codes := map[string]app.FailureCode{"failed": app.FailedExit, "lost twice": app.FailedLost}
		for name, code := range codes {
			if f := w.job(name).Failure; f.Code != code {
				t.Errorf("%s: failure %+v", name, f)
			}
		}
	})
}

func TestJobOfAnUnknownExecutorIsLeftAloneUnlessItIsCancelled(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(string, int) script { return script{runs: time.Hour, cause: app.CauseDone} })
		stop := w.start()
		id := w.submit(ann, "a", `{}`)
		w.submit(ann, "cancelled", `{}`)
		w.until("a", app.Running)
		w.until("cancelled", app.Running)
		stop()
		w.executor.name = "elsewhere"
		stop = w.start()
		time.Sleep(2 * time.Hour)
		if s := w.job("a").Status; s != app.Running {
			t.Fatalf("status %s", s)
		}
		_, err := w.Jobs.Cancel(t.Context(), ann, "cancelled")
		must.OK(t, err)
		if f := w.finished("cancelled").Failure; f.Code != app.FailedStopped {
			t.Errorf("failure %+v", f)
		}
		stop()
		w.executor.name = "local"
		stop = w.start()
		if r := w.finished("a"); r.Status != app.Completed || w.executor.started(id) != 1 {
			t.Errorf("record %+v", r.Job)
		}
		stop()
		w.start()
		w.submit(ann, "b", `{}`)
		w.until("b", app.Running)
	})
}

// TestDirectoryInUseIsLeftAlone has a runner crash just after it started a task, before
// the executor sees the task.
func TestDirectoryInUseIsLeftAlone(t *testing.T) {
	tests := map[string]func(dir string) error{
		"run.json":     func(dir string) error { return os.WriteFile(filepath.Join(dir, task.RunFile), nil, 0o600) },
		"outcome.json": func(dir string) error { return os.WriteFile(filepath.Join(dir, task.OutcomeFile), nil, 0o600) },
		"lock": func(dir string) error {
			lock, err := task.Lock(dir)
			t.Cleanup(func() { lock.Close() })
			return err
		},
	}
	for name, use := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				j, _, err := w.Runs.Claim(t.Context(), w.submit(ann, "a", `{}`), placement.Devices{}, app.ClaimLimit{})
				must.OK(t, err)
				r := New(w.jobs, w.files, []app.Executor{w.executor}, w.options)
				a := &attempt{core: &r.core, executor: r.executors[0], id: j.ID, lease: schedule.Lease{Needs: j.Private.Needs}, stop: make(chan struct{})}
				a.setJob(j)
				must.OK(t, os.MkdirAll(a.dir, 0o700))
				must.OK(t, use(a.dir))
				if err := a.makeDir(t.Context()); !errors.Is(err, errAlive) {
					t.Errorf("error %v, want %v", err, errAlive)
				}
				if isDir(filepath.Join(a.dir, task.WorkDir)) {
					t.Error("a work directory was made")
				}
			})
		})
	}
}

func TestTaskThatDisappearedUnseenIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.submit(ann, "a", `{}`)
		_, _, err := w.Runs.Claim(t.Context(), id, placement.Devices{}, app.ClaimLimit{})
		must.OK(t, err)
		must.OK(t, os.MkdirAll(w.path(id, "1"), 0o700))
		must.OK(t, os.WriteFile(w.path(id, "1", task.RunFile), nil, 0o600))
		w.start()
		if r := w.finished("a"); w.executor.started(id) != 1 || r.Attempts != 2 {
			t.Errorf("%d tasks, record %+v; want only the second attempt to be started", w.executor.started(id), r.Job)
		}
	})
}
