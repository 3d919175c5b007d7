package task

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"molrun/app/task/protocol"
)

// A worker is a process that runs short tasks one after the other, so that a task costs
// little more than its programs. Its directory, which belongs to no task, holds
//
//	run.lock   locked as long as the worker exists
//	run.json   the worker's process
//	claim/     on a cluster: records which cluster job is the worker
//	worker.log  the worker's own messages
//	rows.<n>   from 1 on: directories of tasks, to be run in this order
//	closed     exists when no further tasks will follow
//	return     exists when the worker is asked to return the tasks that have not started
//	returned   exists when it will start no further task
//
// The starter of a worker writes these files, also while the worker runs. The worker runs
// each task as if it were alone: with its own task.json, limits, sandbox, log and
// outcome.json. The state of a task follows from the two directories:
//
//   - With outcome.json, it has ended. That file is written only once.
//   - Otherwise, while the worker's lock is held, it is running if it has run.json, and waiting if not.
//   - Otherwise, with run.json, it is lost. Only processes of its programs can remain.
//   - Otherwise it never started and can be run again, also by another worker.
//
// If possible, the tasks share a sandbox, in which each has its slot, its own view and no
// access to processes of another task; see sandbox.Shared.
//
// A worker gets no signal to stop one of its tasks: it checks each of them for the file
// stop. SIGTERM means that the machine is shutting down: the running task is interrupted,
// and the others do not start.
const (
	WorkerLogFile = "worker.log"
	closedFile    = "closed"
	returnFile    = "return"
	returnedFile  = "returned"
	chunkPrefix   = "rows."
)

// The timing of a worker.
const (
	firstRowsPause = time.Millisecond
	mostRowsPause  = 20 * time.Millisecond
	// stopEvery is how often a worker checks whether one of its tasks was stopped.
	stopEvery = 100 * time.Millisecond
	// idleLimit is how long a worker waits for tasks. Only if the service has exited can
	// it go without tasks and not be closed.
	idleLimit = 10 * time.Second
)

// chunk is the content of rows.<n>.
type chunk struct {
	Protocol int      `json:"protocol"`
	Rows     []string `json:"rows"`
}

// AssignTasks assigns the n-th chunk of tasks to a worker, by their directories. After an
// error the worker will never see them.
func AssignTasks(dir string, n int, rows []string) error {
	name := chunkPrefix + strconv.Itoa(n)
	err := writeUnsynced(dir, name, chunk{Protocol, rows})
	if err != nil && Exists(dir, name) {
		return nil
	}
	return err
}

// WorkerTasks returns the directories of the tasks assigned to a worker, in order.
func WorkerTasks(dir string) (rows []string) {
	for n := 1; ; n++ {
		p, err := readFile[chunk](dir, chunkPrefix+strconv.Itoa(n))
		if errors.Is(err, fs.ErrNotExist) {
			return rows
		}
		if err == nil {
			rows = append(rows, p.Rows...)
		}
	}
}

// CloseWorker notifies a worker that no more tasks will follow.
func CloseWorker(dir string) error {
	return os.WriteFile(filepath.Join(dir, closedFile), nil, 0o600)
}

// AskReturn asks a worker to start no further task, because the running one takes a long
// time.
func AskReturn(dir string) error {
	return os.WriteFile(filepath.Join(dir, returnFile), nil, 0o600)
}

// Returned reports whether a worker has confirmed AskReturn. Its tasks that have not
// started by then will not start.
func Returned(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, returnedFile))
	return err == nil
}

// ClearWorker removes the control files of a worker that has exited, so that another one
// can start in its directory. The caller holds the lock.
func ClearWorker(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if slices.Contains([]string{RunFile, closedFile, returnFile, returnedFile}, e.Name()) || strings.HasPrefix(e.Name(), chunkPrefix) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// ShareLock makes a worker's lock also the lock of a task. If a version of the service
// that does not support workers takes over, the task is running as long as its worker
// exists.
func ShareLock(worker, dir string) error {
	f, err := os.OpenFile(filepath.Join(worker, LockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(f.Close(), os.RemoveAll(filepath.Join(dir, LockFile)))
	if err != nil {
		return err
	}
	return os.Link(filepath.Join(worker, LockFile), filepath.Join(dir, LockFile))
}

// RunWorker runs the tasks assigned to a worker until it is closed or asked to exit. Like
// Run, it is the entire life of a process.
func RunWorker(ctx context.Context, dir string, o Options) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := takeLock(dir, o.LockFD); err != nil {
		return err
	}
	o.Worker = true
	h, err := newHost(ctx, o)
	if err != nil {
		return err
	}
	defer h.close()
	run := Started{Protocol: Protocol, ID: h.self, Isolation: h.isolation.Kind(), StartedAt: milliseconds(time.Now())}
	if err := writeUnsynced(dir, RunFile, run); err != nil {
		return err
	}
	looks := time.NewTicker(stopEvery)
	defer looks.Stop()
	h.stopTicks = looks.C
	p := &worker{host: h, dir: dir}
	defer p.shared.discard()
	h.checkOthers = p.checkWaiting
	for p.await() {
		p.shared.above = folderAbove(p.rows)
		row := p.rows[0]
		p.row, p.rows = row, p.rows[1:]
		if err := p.runTask(row); err != nil && !errors.Is(err, ErrRefused) {
			fmt.Fprintf(os.Stderr, "task %s: %v\n", row, err) // the service detects this
		}
		if p.terminating || ctx.Err() != nil {
			return nil
		}
	}
	return nil
}

// worker is a host that receives tasks while it runs.
type worker struct {
	*host
	dir      string
	chunks   int      // read so far
	row      string   // the running task
	rows     []string // the tasks still to run
	returned bool     // no further task will start
}

// await waits for the next task. It reports false if there will be none.
func (p *worker) await() bool {
	pause, idle := firstRowsPause, time.Now()
	for {
		p.readChunks()
		p.returnTasks()
		switch {
		case p.returned, StopRequested(p.dir): // Slurm's signal can arrive after a task has ended
			return false
		case len(p.rows) > 0:
			return true
		case Exists(p.dir, closedFile) && !Exists(p.dir, p.nextChunkFile()), time.Since(idle) >= idleLimit:
			return false
		}
		select {
		case <-p.termSignals:
			return false
		case <-p.ctx.Done():
			return false
		case <-time.After(pause):
			pause = min(2*pause, mostRowsPause)
		}
	}
}

func (p *worker) nextChunkFile() string { return chunkPrefix + strconv.Itoa(p.chunks+1) }

// Refresh makes recent changes in a directory on a network file system visible to this
// process: opening the directory makes the client query the server, instead of caching
// for a while that a file is missing.
func Refresh(dir string) {
	if f, err := os.Open(dir); err == nil {
		f.Close()
	}
}

// readChunks reads new chunks. An unreadable one is skipped: its tasks do not start here.
func (p *worker) readChunks() {
	Refresh(p.dir)
	for {
		rows, err := readFile[chunk](p.dir, p.nextChunkFile())
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		p.chunks++
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			continue
		}
		p.rows = append(p.rows, rows.Rows...)
	}
}

// checkWaiting handles requests for the waiting tasks while one runs.
func (p *worker) checkWaiting() {
	p.readChunks()
	p.returnTasks()
	p.endStopped()
	Refresh(p.row)
}

// returnTasks returns the waiting tasks if that was requested, and confirms it.
func (p *worker) returnTasks() {
	if p.returned {
		p.rows = nil
		return
	}
	if _, err := os.Lstat(filepath.Join(p.dir, returnFile)); err != nil {
		return
	}
	p.returned, p.rows = true, nil
	if err := os.WriteFile(filepath.Join(p.dir, returnedFile), nil, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err) // the exit of this process has the same meaning
	}
}

// endStopped ends the waiting tasks that were stopped, which might not be next for a long
// time.
func (p *worker) endStopped() {
	p.rows = slices.DeleteFunc(p.rows, func(row string) bool {
		if !StopRequested(row) || Exists(row, OutcomeFile) || Exists(row, RunFile) {
			return false
		}
		reserved, err := reserveOutcome(row)
		if err == nil {
			s := newShim(p.host, row)
			s.decide(protocol.CauseStopped, "The job was stopped.")
			err = reserved.write(s.finish())
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "task %s: %v\n", row, err) // it is stopped when it is next
		}
		return err == nil
	})
}
