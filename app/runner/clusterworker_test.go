package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/task"
	"molrun/app/test/must"
)

// workerCluster is a cluster that runs workers. Each worker runs its jobs one after
// another, as scripted.
type workerCluster struct {
	remote
	w *world

	mu      sync.Mutex
	flights []*workerProcess
	room    int   // maximum number of concurrent workers
	most    int   // most workers that ran at once
	refuses error // error of StartWorker
	silent  error // error of Status
}

var _ app.Workers = (*workerCluster)(nil)

type workerProcess struct {
	dir      string
	portions int
	rows     []app.Task // not yet started
	current  []app.Task // the running job
	begun    bool
	over     bool // it was shut down, or died
	cancels  bool // it was canceled by hand
}

func workerClusterOf(w *world) *workerCluster {
	w.makeRemote(1000)
	f := &workerCluster{remote: w.front.(remote), w: w, room: 8}
	w.front, w.options.WorkersDir = f, filepath.Join(w.dir, "workers")
	return f
}

func (f *workerCluster) StartWorker(_ context.Context, dir string, _ app.Task, rows []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuses != nil {
		return f.refuses
	}
	f.flights = append(f.flights, &workerProcess{dir: dir})
	return task.AssignTasks(dir, 1, rows)
}

func (f *workerCluster) ShutdownWorker(_ context.Context, dir string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.processOf(dir); p != nil {
		p.over = true
	}
	return true, task.CloseWorker(dir)
}

// crash ends a worker and its running job.
func (f *workerCluster) crash(p *workerProcess) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p.over = true
	f.w.executor.mu.Lock()
	defer f.w.executor.mu.Unlock()
	for _, t := range p.current {
		running := f.w.executor.tasks[t.Token]
		running.end, running.cause = time.Now(), ""
	}
}

func (f *workerCluster) runningWorkers() (n int) {
	for _, p := range f.flights {
		n += count(p.begun && !p.over)
	}
	return n
}

// Status advances the workers and returns the status of the tasks.
func (f *workerCluster) Status(ctx context.Context, tasks []app.Task) ([]app.TaskStatus, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.silent != nil {
		return nil, f.silent
	}
	all := make([]app.TaskStatus, len(tasks))
	for i, t := range tasks {
		p := f.processOf(t.Worker)
		if p != nil {
			f.fly(ctx, p)
		}
		known, err := f.remote.Status(ctx, tasks[i:i+1])
		must.OK(f.w.t, err)
		begun := task.Exists(t.Dir, task.RunFile)
		switch all[i] = known[0]; {
		case p == nil || all[i].State == app.TaskEnded:
		case p.over:
			all[i] = app.TaskStatus{State: app.TaskLost, Reason: "the worker is gone"}
			if p.cancels {
				all[i].Outcome = &app.Outcome{Protocol: task.Protocol, Cause: app.CauseStopped, Message: "Root has cancelled it."}
			}
			if p.cancels && begun {
				all[i].State = app.TaskEnded
			}
		case !p.begun:
			all[i] = app.TaskStatus{State: app.TaskStarting, Reason: "the cluster is busy"}
		case !begun:
			all[i] = app.TaskStatus{State: app.TaskStarting}
		}
	}
	return all, nil
}

func (f *workerCluster) processOf(dir string) *workerProcess {
	i := slices.IndexFunc(f.flights, func(p *workerProcess) bool { return p.dir == dir && dir != "" })
	if i < 0 {
		return nil
	}
	return f.flights[i]
}

func (f *workerCluster) fly(ctx context.Context, p *workerProcess) {
	p.begun = p.begun || f.runningWorkers() < f.room
	f.most = max(f.most, f.runningWorkers())
	if !p.begun || p.over {
		return
	}
	for {
		text, err := os.ReadFile(filepath.Join(p.dir, fmt.Sprintf("rows.%d", p.portions+1)))
		if err != nil {
			break
		}
		var portion struct{ Rows []string }
		must.OK(f.w.t, json.Unmarshal(text, &portion))
		p.portions++
		for _, dir := range portion.Rows {
			spec, err := task.ReadSpec(dir)
			must.OK(f.w.t, err)
			p.rows = append(p.rows, app.Task{
				Job: app.JobID(spec.Job), Attempt: spec.Attempt, Token: spec.Token, Dir: dir,
				Limit: time.Duration(spec.MaxRuntimeSeconds) * time.Second,
			})
		}
	}
	if len(p.current) > 0 {
		now, err := f.remote.Status(ctx, p.current)
		must.OK(f.w.t, err)
		if now[0].State != app.TaskEnded {
			return
		}
	}
	p.current = nil
	if len(p.rows) > 0 {
		_, err := f.Start(ctx, p.rows[0])
		must.OK(f.w.t, err)
		p.current, p.rows = p.rows[:1:1], p.rows[1:]
	}
}

// with changes the cluster under its lock.
func (f *workerCluster) with(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// short runs jobs that make the expected run time one second.
func (w *world) short() {
	w.play(func(string, int) script { return script{runs: time.Second, cause: app.CauseDone} })
	for i := range 3 {
		w.submit(ann, fmt.Sprint("before", i), `{}`)
		w.finished(fmt.Sprint("before", i))
	}
}

// manyRows submits a batch of n jobs.
func (w *world) manyRows(name string, n int) {
	w.t.Helper()
	w.batchOf(ann, name, slices.Repeat([]string{`{}`}, n)...)
}

// onAWorkerCluster runs a test on a cluster with short jobs.
func onAWorkerCluster(t *testing.T, test func(t *testing.T, w *world, f *workerCluster)) {
	bubble(t, func(t *testing.T, w *world) {
		f := workerClusterOf(w)
		stop := w.start()
		w.short()
		stop()
		test(t, w, f)
	})
}

// once fails unless every job of a batch has run once, or the number of times given in
// others.
func (w *world) once(batch string, rows int, others map[int]int) {
	w.t.Helper()
	for n := 1; n <= rows; n++ {
		want := 1
		if more, ok := others[n]; ok {
			want = more
		}
		if r := w.row(batch, n); r.Status != app.Completed || w.executor.started(r.ID) != want {
			w.t.Errorf("row %d is %s and was begun %d times, want %d", n, r.Status, w.executor.started(r.ID), want)
		}
	}
}

// While workers wait for a cluster, jobs stay in the queue. The workers that start first
// take them.
func TestWorkersWaitForACluster(t *testing.T) {
	onAWorkerCluster(t, func(t *testing.T, w *world, f *workerCluster) {
		const rows = 600
		f.room = 0
		w.start()
		w.manyRows("b", rows)
		time.Sleep(time.Minute)
		must.Equal(t, "workers wait for the cluster", len(f.flights), 8)
		reasons := map[string]int{}
		for n := 1; n <= rows; n++ {
			reasons[w.row("b", n).StatusReason]++
		}
		if reasons["the cluster is busy"] != 8*5 || reasons[heldText] == 0 {
			t.Errorf("reasons %v", reasons)
		}
		f.with(func() { f.room = 20 })
		w.finished("b")
		w.once("b", rows, nil)
		if n := len(f.flights); n > 60 || f.most != 20 {
			t.Errorf("%d rows took %d workers, of which %d ran at once; want that they take more, and that all room is used", rows, n, f.most)
		}
		time.Sleep(time.Minute)
		left, err := os.ReadDir(filepath.Join(w.dir, remoteWorkersDir))
		if err != nil || len(left) > 0 {
			t.Errorf("directories of workers are left: %v, %v", left, err)
		}
		before := len(f.flights)
		f.with(func() { f.room = 0 })
		w.manyRows("c", rows)
		time.Sleep(time.Minute)
		must.Equal(t, "then", len(f.flights)-before, 8)
	})
}

// Short jobs get no worker if they are not in a batch, or are alone in one. Very short
// ones share a worker, with more jobs than a process on this machine takes.
func TestWorkersForRowsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		f := workerClusterOf(w)
		w.play(func(string, int) script { return script{runs: 10 * time.Millisecond, cause: app.CauseDone} })
		w.start()
		for n := range 20 {
			w.submit(ann, fmt.Sprint("one", n), `{}`)
			w.finished(fmt.Sprint("one", n))
			w.manyRows(fmt.Sprint("b", n), 1)
			w.finished(fmt.Sprint("b", n))
		}
		if len(f.flights) > 0 {
			t.Errorf("%d workers", len(f.flights))
		}
		w.manyRows("b", 250)
		w.finished("b")
		w.once("b", 250, nil)
		must.Equal(t, "250 rows of 10 ms took", len(f.flights), 1)
	})
}

// A cleanup must not remove the workers of claimed jobs before a runner has found them.
func TestSweepBeforeWorkersAreFound(t *testing.T) {
	onAWorkerCluster(t, func(t *testing.T, w *world, f *workerCluster) {
		f.room = 0
		stop := w.start()
		w.manyRows("b", 20)
		time.Sleep(3 * time.Second)
		stop()
		stray := filepath.Join(w.dir, remoteWorkersDir, "STRAY-1")
		must.OK(t, os.Mkdir(stray, 0o700))
		must.OK(t, New(w.jobs, w.files, []app.Executor{f}, w.options).cleanUpAllWorkers(t.Context()))
		if exists(stray) {
			t.Error("the directory of a worker without rows is left")
		}
		if len(f.flights) == 0 {
			t.Error("there is no worker")
		}
		for _, p := range f.flights {
			if p.over || !exists(p.dir) {
				t.Errorf("worker %s was ended", p.dir)
			}
		}
	})
}

// If a worker dies, its jobs that had not begun go to a new process with its own
// directory.
func TestLostWorkerOfACluster(t *testing.T) {
	onAWorkerCluster(t, func(t *testing.T, w *world, f *workerCluster) {
		w.start()
		w.manyRows("b", 5)
		begun, runs := map[int]bool{}, 0
		must.Become(t, "the second row, whichever that is", func() bool {
			time.Sleep(10 * time.Millisecond)
			for n := 1; n <= 5; n++ {
				if !begun[n] && w.executor.started(w.row("b", n).ID) > 0 {
					begun[n], runs = true, n
				}
			}
			return len(begun) > 1
		})
		f.crash(f.flights[0])
		w.finished("b")
		w.once("b", 5, map[int]int{runs: 2})
		first := f.flights[0].dir
		if len(f.flights) != 2 || f.flights[1].dir != strings.TrimSuffix(first, "-1")+"-2" {
			t.Errorf("flights %+v", f.flights)
		}
	})
}

// If a user cancels a worker in Slurm, its waiting jobs run in another one. Canceling that
// one as well ends them.
func TestCancelledWorkerOfACluster(t *testing.T) {
	onAWorkerCluster(t, func(t *testing.T, w *world, f *workerCluster) {
		w.start()
		w.manyRows("b", 5)
		for n := range 2 {
			must.Become(t, "a row runs in the next worker", func() bool {
				time.Sleep(10 * time.Millisecond)
				f.mu.Lock()
				defer f.mu.Unlock()
				return len(f.flights) > n && len(f.flights[n].current) > 0
			})
			f.with(func() { f.flights[n].cancels = true })
			f.crash(f.flights[n])
		}
		w.finished("b")
		begun := 0
		for n := 1; n <= 5; n++ {
			r := w.row("b", n)
			begun += w.executor.started(r.ID)
			if r.Failure == nil || r.Failure.Code != app.FailedStopped || r.Failure.Message != "Root has cancelled it." {
				t.Errorf("row %d is %s: %+v", n, r.Status, r.Failure)
			}
		}
		if begun != 2 || len(f.flights) != 2 {
			t.Errorf("%d rows were begun in %d workers, want two in two", begun, len(f.flights))
		}
	})
}

// A runner resumes the workers of the previous one, and assigns the jobs that they never
// began to new workers.
func TestWorkersOfAClusterAreFoundAgain(t *testing.T) {
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprint("busy: ", busy), func(t *testing.T) {
			onAWorkerCluster(t, func(t *testing.T, w *world, f *workerCluster) {
				if busy {
					f.room = 0
				}
				stop := w.start()
				w.manyRows("b", 60)
				time.Sleep(3 * time.Second)
				stop()
				before := len(f.flights)
				w.start()
				time.Sleep(3 * time.Second)
				if busy && len(f.flights) > 8 {
					t.Errorf("%d workers, %d before the restart", len(f.flights), before)
				}
				f.with(func() { f.room = 8 })
				w.finished("b")
				w.once("b", 60, nil)
			})
		})
	}
}

// Jobs report why their worker does not start, and fail if it never can.
func TestWorkerThatAClusterDoesNotTake(t *testing.T) {
	onAWorkerCluster(t, func(t *testing.T, w *world, f *workerCluster) {
		f.refuses = fault.Errorf(fault.Unavailable, "the controller does not respond")
		w.start()
		w.manyRows("b", 5)
		time.Sleep(20 * time.Second)
		for n := 1; n <= 5; n++ {
			if r := w.row("b", n); r.Status != app.Queued || !strings.Contains(r.StatusReason, "the controller does not respond") {
				t.Errorf("row %d is %s: %s", n, r.Status, r.StatusReason)
			}
		}
		f.with(func() { f.refuses = nil })
		w.finished("b")
		w.once("b", 5, nil)
		f.with(func() {
			f.refuses = fmt.Errorf("submit: %w", fault.Errorf(fault.Invalid, "There is no such partition."))
		})
		w.manyRows("c", 5)
		w.finished("c")
		for n := 1; n <= 5; n++ {
			if r := w.row("c", n); r.Failure == nil || r.Failure.Code != app.FailedCannotStart || r.Failure.Message != "There is no such partition." {
				t.Errorf("row %d: %+v", n, r.Failure)
			}
		}
	})
}

// Jobs waiting in a worker report that the cluster does not respond.
func TestRowsSayThatTheClusterDoesNotAnswer(t *testing.T) {
	onAWorkerCluster(t, func(t *testing.T, w *world, f *workerCluster) {
		f.room = 0
		w.start()
		w.manyRows("b", 5)
		time.Sleep(20 * time.Second)
		f.with(func() { f.silent = fault.Errorf(fault.Unavailable, "The folder is away.") })
		time.Sleep(20 * time.Second)
		for n := 1; n <= 5; n++ {
			if r := w.row("b", n); r.StatusReason != "waiting for the cluster: The folder is away" {
				t.Errorf("row %d is %s: %s", n, r.Status, r.StatusReason)
			}
		}
		f.with(func() { f.silent, f.room = nil, 8 })
		w.finished("b")
		w.once("b", 5, nil)
	})
}

// Results of jobs that end together are made durable together, and are marked as unsynced
// until then; those of other jobs are synced file by file.
func TestResultsOfRowsOfAClusterAreMadeDurableTogether(t *testing.T) {
	onAWorkerCluster(t, func(t *testing.T, w *world, _ *workerCluster) {
		boot, err := task.BootID()
		must.OK(t, err)
		w.start()
		w.manyRows("b", 5)
		w.finished("b")
		for n := 1; n <= 5; n++ {
			if got, err := os.ReadFile(filepath.Join(w.files.JobDir(w.row("b", n).ID), "1", ".fetched")); string(got) != boot {
				t.Errorf("row %d was copied during the boot %q, %v, want %q", n, got, err, boot)
			}
		}
		if _, err := os.Stat(filepath.Join(w.files.JobDir(w.job("before0").ID), "1", ".fetched")); err == nil {
			t.Error("a job without a worker waits for the others")
		}
	})
}
