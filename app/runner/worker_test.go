package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/strictjson"
	"molrun/app/task"
	"molrun/app/test/must"
)

// withWorkers returns a world whose tasks are processes, on that many CPUs, and in which
// jobs are expected to be short because three have run.
func withWorkers(t *testing.T, cpus int) *world {
	t.Helper()
	w := onThisMachine(t, cpus, nil)
	w.options.WorkersDir = filepath.Join(w.dir, "workers")
	stop := w.start()
	w.batch(ann, "before", "true", "true", "true")
	w.finished("before")
	stop()
	return w
}

// batch queues a batch of scripts.
func (w *world) batch(by app.Caller, name string, scripts ...string) {
	w.t.Helper()
	var rows []string
	for _, s := range scripts {
		rows = append(rows, fmt.Sprintf(`{"script":%q}`, s))
	}
	w.batchOf(by, name, rows...)
}

// batchOf queues a batch of jobs with these settings.
func (w *world) batchOf(by app.Caller, name string, rows ...string) {
	w.t.Helper()
	body, err := strictjson.Parse(fmt.Appendf(nil, `{"batchName":%q,"type":"sim","settings":[%s]}`, name, strings.Join(rows, ",")))
	must.OK(w.t, err)
	sub := app.BatchSubmission{Name: name, Type: "sim", Body: body}
	sub.Rows = body.Member("settings").Items
	_, _, err = w.Jobs.SubmitBatch(w.t.Context(), by, sub)
	must.OK(w.t, err)
}

// row returns the n-th job of a batch, from 1.
func (w *world) row(batch string, n int) record { return w.job(fmt.Sprintf("%s-%d", batch, n)) }

// process returns the PID of the process that ran an attempt.
func (w *world) process(id app.JobID, attempt int) int {
	w.t.Helper()
	run, err := task.ReadRun(w.path(id, fmt.Sprint(attempt)))
	must.OK(w.t, err)
	return run.PID
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// noWorkers waits until no worker remains, on disk or in the scheduler.
func (w *world) noWorkers() {
	w.t.Helper()
	must.Become(w.t, "the workers to land", func() bool {
		left, err := os.ReadDir(w.options.WorkersDir)
		return err == nil && len(left) == 0
	})
}

// ranOnce waits for the end of the batch b, whose jobs record their runs in a file.
func (w *world) ranOnce(rows int) {
	w.t.Helper()
	if r := w.finished("b"); r.Status != app.Completed {
		w.t.Fatalf("%+v", r.Counts)
	}
	must.Equal(w.t, "rows ran", strings.Count(w.text(filepath.Join(w.dir, "ran")), "x"), rows)
}

// Jobs of a batch share processes. Each ends as it would alone, and runs once.
func TestRowsShareAProcess(t *testing.T) {
	w := withWorkers(t, 2)
	count := filepath.Join(w.dir, "count")
	must.OK(t, os.Mkdir(count, 0o700))
	// Each job records that it runs, and how many run at once.
	script := func(n int, rest string) string {
		return fmt.Sprintf(`echo x >>%s/%d; echo row %d; %s`, count, n, n, rest)
	}
	var scripts []string
	for n := 1; n <= 200; n++ {
		switch rest := fmt.Sprintf("echo %d >$1/n", n); {
		case n%10 == 3:
			scripts = append(scripts, script(n, "exit 7"))
		case n%10 == 5:
			scripts = append(scripts, script(n, "kill -9 $$"))
		default:
			scripts = append(scripts, script(n, rest))
		}
	}
	w.batch(ann, "b", scripts...)
	w.start()
	w.finished("b")
	processes := map[int]int{}
	for n := 1; n <= 200; n++ {
		r := w.row("b", n)
		if ran := w.text(filepath.Join(count, fmt.Sprint(n))); ran != "x\n" || r.Attempts != 1 {
			t.Errorf("row %d ran %d times in %d attempts", n, strings.Count(ran, "x"), r.Attempts)
		}
		processes[w.process(r.ID, 1)]++
		switch f := r.Failure; {
		case n%10 == 3 && (f == nil || f.Code != app.FailedExit || *f.ExitCode != 7 || !strings.Contains(f.LogTail, fmt.Sprintf("row %d\n", n))):
			t.Errorf("row %d: %+v", n, f)
		case n%10 == 5 && (f == nil || f.Code != app.FailedSignal || f.Signal != "SIGKILL"):
			t.Errorf("row %d: %+v", n, f)
		case n%10 != 3 && n%10 != 5:
			if f != nil || r.Metrics == nil || r.StartedAt.IsZero() || r.CompletedAt.Before(r.StartedAt.Time) {
				t.Fatalf("row %d: %+v", n, r.Job)
			}
			if got := w.checkResult(r.ID); got["n"] != fmt.Sprintln(n) || got["log.txt"] != fmt.Sprintf("row %d\n", n) {
				t.Errorf("row %d: %v", n, got)
			}
		}
	}
	if len(processes) > 20 {
		t.Errorf("200 rows had %d processes", len(processes))
	}
	w.noWorkers()
}

// A worker takes more jobs while no other user waits.
func TestWorkerTakesMoreRows(t *testing.T) {
	w := withWorkers(t, 1)
	w.batch(ann, "b", slices.Repeat([]string{"true"}, 5*chunkRows)...)
	w.start()
	w.finished("b")
	processes := map[int]bool{}
	for n := 1; n <= 5*chunkRows; n++ {
		processes[w.process(w.row("b", n).ID, 1)] = true
	}
	if len(processes) > 2 {
		t.Errorf("%d rows had %d processes", 5*chunkRows, len(processes))
	}
}

// Jobs that share a process use one slot, and another user's job gets the next.
func TestWorkerYieldsSlotToOtherUsers(t *testing.T) {
	w := withWorkers(t, 1)
	w.start()
	gate := filepath.Join(w.dir, "gate")
	w.batch(ann, "b", slices.Repeat([]string{fmt.Sprintf(`mkdir %[1]s/one || exit 5; until [ -e %[1]s/gate ]; do sleep 0.01; done; rmdir %[1]s/one`, w.dir)}, 600)...)
	w.until("b", app.Running)
	w.submit(bob, "other", fmt.Sprintf(`{"script":"mkdir %[1]s/one && rmdir %[1]s/one"}`, w.dir))
	must.Become(t, "the job to be seen waiting", func() bool { return w.job("other").Queue.Position > 0 })
	must.OK(t, os.WriteFile(gate, nil, 0o600))
	if r := w.finished("other"); r.Status != app.Completed {
		t.Fatalf("%+v", r.Failure)
	}
	if r := w.job("b"); r.Status.Finished() {
		t.Error("the other user's job came behind all rows")
	}
	if r := w.finished("b"); r.Status != app.Completed {
		t.Errorf("rows ran at the same time on one CPU: %+v", r.Counts)
	}
}

// Jobs behind a long-running one get another slot and run once, whether the same runner
// or the next one starts them. This holds even if the clock was set back, so that the
// long job seems to start in the future.
func TestJobsBehindLongJobAreReturned(t *testing.T) {
	const rows = 40
	for name, back := range map[string]time.Duration{"the same runner": -1, "the next": 0, "a clock set back": time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := withWorkers(t, 2)
			w.options.LongJob = 500 * time.Millisecond
			stop := w.start()
			// Another job holds the second slot until the file second exists.
			w.submit(bob, "other", fmt.Sprintf(`{"script":"until [ -e %s/second ]; do sleep 0.01; done"}`, w.dir))
			w.until("other", app.Running)
			script := fmt.Sprintf("echo x >>%[1]s/ran; if mkdir %[1]s/long; then until [ -e %[1]s/first ]; do sleep 0.01; done; fi", w.dir)
			w.batch(ann, "b", slices.Repeat([]string{script}, rows)...)
			must.Become(t, "a row to take long", func() bool { return exists(filepath.Join(w.dir, "long")) })
			if back >= 0 {
				stop()
				w.options.Now = func() time.Time { return time.Now().Add(-back) }
				w.start()
			}
			must.OK(t, os.WriteFile(filepath.Join(w.dir, "second"), nil, 0o600))
			must.Become(t, "the other rows to end", func() bool { return w.job("b").Counts.Completed == rows-1 })
			must.OK(t, os.WriteFile(filepath.Join(w.dir, "first"), nil, 0o600))
			w.ranOnce(rows)
			for n := 1; n <= rows; n++ {
				if r := w.row("b", n); r.Attempts != 1 {
					t.Errorf("row %d has %d attempts", n, r.Attempts)
				}
			}
			w.noWorkers()
		})
	}
}

// A lost response must not lose the claimed jobs. If the first job's record names a
// worker, the next runner finds the job there.
func TestAnswerAboutClaimedRowsIsLost(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%v", restart), func(t *testing.T) {
			w := withWorkers(t, 1)
			w.jobs = &forgetful{Jobs: w.Service.Runs}
			w.batch(ann, "b", slices.Repeat([]string{fmt.Sprintf("echo x >>%[1]s/ran; until [ -e %[1]s/gate ]; do sleep 0.01; done", w.dir)}, 40)...)
			stop := w.start()
			w.until("b", app.Running)
			must.Become(t, "the row to begin", func() bool { return exists(filepath.Join(w.dir, "ran")) })
			if restart {
				stop()
				w.jobs = w.Service.Runs
				w.start()
				time.Sleep(200 * time.Millisecond) // so that it is polled more than once
			}
			must.OK(t, os.WriteFile(filepath.Join(w.dir, "gate"), nil, 0o600))
			w.ranOnce(40)
		})
	}
}

// forgetful claims jobs but returns an error the first times.
type forgetful struct {
	Jobs
	times int
}

func (f *forgetful) ClaimRows(ctx context.Context, first *app.Job, p app.ClaimLimit) ([]*app.Job, error) {
	p.Rows = 5
	rows, err := f.Jobs.ClaimRows(ctx, first, p)
	if f.times++; err == nil && f.times < 3 {
		return nil, errors.New("the answer is lost")
	}
	return rows, err
}

// A worker claims a job whose own claim has failed and is being retried. The job then
// belongs to the worker only, and its former slot is free.
func TestWorkerTakesARowThatIsBeingClaimed(t *testing.T) {
	w := withWorkers(t, 2)
	w.options.LongJob = time.Hour
	w.jobs = &contended{Jobs: w.Service.Runs, failed: make(chan struct{}), taken: make(chan struct{}), looked: make(chan struct{})}
	script := fmt.Sprintf("echo x >>%[1]s/ran; until [ -e %[1]s/gate ]; do sleep 0.01; done", w.dir)
	w.batch(ann, "b", slices.Repeat([]string{script}, 4)...)
	w.start()
	w.until("b", app.Running)
	w.submit(bob, "other", `{"script":"true"}`)
	must.Become(t, "a job in the other slot", func() bool { return w.job("other").Status == app.Completed })
	must.OK(t, os.WriteFile(filepath.Join(w.dir, "gate"), nil, 0o600))
	w.ranOnce(4)
	w.noWorkers()
}

// contended fails the first claim. Its retry waits until the next claim has also claimed
// that job, and the response to that claim follows the retry.
type contended struct {
	Jobs
	failed, taken, looked chan struct{}

	mu     sync.Mutex
	claims int
	again  context.Context // context of the retried claim
}

func (c *contended) Claim(ctx context.Context, id app.JobID, leased placement.Devices, p app.ClaimLimit) (*app.Job, []*app.Job, error) {
	c.mu.Lock()
	c.claims++
	n := c.claims
	if n == 3 {
		c.again = ctx
	}
	c.mu.Unlock()
	switch n {
	case 1:
		close(c.failed)
		return nil, nil, errors.New("the disk is full")
	case 2:
		<-c.failed
		defer func() { close(c.taken); <-c.looked }()
	case 3:
		<-c.taken
	}
	return c.Jobs.Claim(ctx, id, leased, p)
}

func (c *contended) Active(ctx context.Context) ([]*app.Job, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx == c.again {
		defer close(c.looked)
	}
	return c.Jobs.Active(ctx)
}

// An attempt overtaken by a worker claims nothing, because the loop has dropped it.
func TestOvertakenAttemptClaimsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.submit(ann, "a", `{}`)
		r := New(w.jobs, w.files, []app.Executor{w.executor}, w.options)
		overtaken := &attempt{core: &r.core, executor: r.executors[0], id: id, stop: make(chan struct{})}
		r.active[id] = overtaken
		r.handleEvent(event{kind: evJoined, attempt: &attempt{core: &r.core, executor: r.executors[0], id: id}})
		if j, _ := overtaken.claim(t.Context(), app.ClaimLimit{}); j != nil || w.job("a").Attempts != 0 {
			t.Errorf("it has claimed %+v", j)
		}
	})
}

// told is an executor that always returns the same statuses.
type told struct {
	app.Executor
	statuses []app.TaskStatus
}

func (e told) Status(context.Context, []app.Task) ([]app.TaskStatus, error) { return e.statuses, nil }

// If a process is lost after it has ended a job, it does not count as lost without
// progress: the count is reset before the loss of its other jobs is delivered.
func TestEndCountsBeforeLoss(t *testing.T) {
	c := &core{options: Options{WorkersDir: t.TempDir()}.withDefaults(), workerCounts: newWorkerCounts()}
	e := &executor{timeout: time.Minute, Executor: told{statuses: []app.TaskStatus{{State: app.TaskLost}, {State: app.TaskEnded}}}}
	p := &worker{core: c, executor: e}
	p.launches.Store(maxLaunches)
	row := func() *workerJob { return newWorkerRow(&attempt{core: c, executor: e, worker: p, job: &app.Job{}}) }
	lost, ended := row(), row()
	ended.news = make(chan statusUpdate) // unbuffered, which blocks the worker
	var asked sync.WaitGroup
	asked.Go(func() { p.pollStatus(t.Context(), []*workerJob{lost, ended}) })
	<-lost.news
	if !lost.neverBegan(app.TaskStatus{State: app.TaskLost}) {
		t.Error("the row counts as begun")
	}
	<-ended.news
	asked.Wait()
}
