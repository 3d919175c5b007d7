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

// A pilot is a process that runs short tasks one after the other, so that each of them
// costs little more than its programs. Its directory, which is not that of any task,
// holds
//
//	run.lock   locked as long as the pilot lives
//	run.json   the pilot's process
//	claim/     on a cluster: which of its jobs is the pilot
//	pilot.log  what it says of itself
//	rows.<n>   from 1 on: directories of tasks, to be run in this order
//	closed     exists when no further rows will follow
//	return     exists when the pilot is asked to return what has not begun
//	returned   exists when it will begin no further task
//
// The starter of a pilot puts these files there, also while it runs. The pilot runs each
// task as if it were alone: with its own task.json, limits, sandbox, log and
// outcome.json. The state of a task follows from the two directories:
//
//   - With outcome.json, it has ended. That file is written only once.
//   - Else, while the pilot's lock is held, it runs if it has run.json, or else waits.
//   - Else, with run.json, it is lost. Only processes of its programs may remain.
//   - Else it never began and can be run again, also by another pilot.
//
// If possible, the tasks share a sandbox, in which each has its slot, its own view and no
// process of another one, see sandbox.Shared.
//
// To stop one of its tasks, a pilot gets no signal: it checks for the file stop of each.
// SIGTERM means that the machine shuts down: the running task is interrupted, and the
// others do not start.
const (
	PilotLogFile = "pilot.log"
	closedFile   = "closed"
	returnFile   = "return"
	returnedFile = "returned"
	rowsPrefix   = "rows."
)

// The times of a pilot.
const (
	firstRowsPause = time.Millisecond
	mostRowsPause  = 20 * time.Millisecond
	// stopEvery is how often a pilot looks whether one of its tasks was stopped.
	stopEvery = 100 * time.Millisecond
	// idleLimit is how long a pilot waits for rows. It is not closed only if the service
	// has gone.
	idleLimit = 10 * time.Second
)

// chunk is the content of rows.<n>.
type chunk struct {
	Protocol int      `json:"protocol"`
	Rows     []string `json:"rows"`
}

// FeedPilot gives a pilot the n-th chunk of its tasks, by their directories. After an error
// it will never see them.
func FeedPilot(dir string, n int, rows []string) error {
	name := rowsPrefix + strconv.Itoa(n)
	err := writeUnsynced(dir, name, chunk{Protocol, rows})
	if err != nil && Exists(dir, name) {
		return nil
	}
	return err
}

// PilotRows returns the directories of the tasks that a pilot was given, in its order.
func PilotRows(dir string) (rows []string) {
	for n := 1; ; n++ {
		p, err := readFile[chunk](dir, rowsPrefix+strconv.Itoa(n))
		if errors.Is(err, fs.ErrNotExist) {
			return rows
		}
		if err == nil {
			rows = append(rows, p.Rows...)
		}
	}
}

// ClosePilot announces to a pilot that there will be no more rows.
func ClosePilot(dir string) error {
	return os.WriteFile(filepath.Join(dir, closedFile), nil, 0o600)
}

// AskReturn asks a pilot to start no further task, because the running one takes long.
func AskReturn(dir string) error {
	return os.WriteFile(filepath.Join(dir, returnFile), nil, 0o600)
}

// Returned reports whether a pilot has confirmed this request. Its tasks that have not
// started by then will not start.
func Returned(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, returnedFile))
	return err == nil
}

// ClearPilot removes the control files of a pilot that has exited, so that another one can
// begin in its directory. The caller holds the lock.
func ClearPilot(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if slices.Contains([]string{RunFile, closedFile, returnFile, returnedFile}, e.Name()) || strings.HasPrefix(e.Name(), rowsPrefix) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// ShareLock makes a pilot's lock that of a task too. It is for versions of the service that
// know no pilots, in case one takes over: to them the task runs as long as its pilot lives.
func ShareLock(pilot, dir string) error {
	f, err := os.OpenFile(filepath.Join(pilot, LockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(f.Close(), os.RemoveAll(filepath.Join(dir, LockFile)))
	if err != nil {
		return err
	}
	return os.Link(filepath.Join(pilot, LockFile), filepath.Join(dir, LockFile))
}

// RunPilot runs the tasks that are put into a pilot's directory until it is closed, or
// asked to end. Like Run it is the whole life of a process.
func RunPilot(ctx context.Context, dir string, o Options) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := takeLock(dir, o.LockFD); err != nil {
		return err
	}
	o.Pilot = true
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
	h.looks = looks.C
	p := &pilot{host: h, dir: dir}
	defer p.shared.discard()
	h.onLook = p.checkWaiting
	for p.await() {
		p.shared.above = folderAbove(p.rows)
		row := p.rows[0]
		p.row, p.rows = row, p.rows[1:]
		if err := p.runTask(row); err != nil && !errors.Is(err, ErrRefused) {
			fmt.Fprintf(os.Stderr, "task %s: %v\n", row, err) // the service finds out
		}
		if p.leaving || ctx.Err() != nil {
			return nil
		}
	}
	return nil
}

// pilot is a host that is given tasks while it runs.
type pilot struct {
	*host
	dir      string
	chunks   int      // read so far
	row      string   // that runs
	rows     []string // that are still to be run
	returned bool     // none will
}

// await reports whether there is a task to run, and waits until there is one.
func (p *pilot) await() bool {
	pause, idle := firstRowsPause, time.Now()
	for {
		p.readChunks()
		p.returnTasks()
		switch {
		case p.returned, StopRequested(p.dir): // Slurm's signal may come later than the end of a row
			return false
		case len(p.rows) > 0:
			return true
		case Exists(p.dir, closedFile) && !Exists(p.dir, p.nextChunkFile()), time.Since(idle) >= idleLimit:
			return false
		}
		select {
		case <-p.ends:
			return false
		case <-p.ctx.Done():
			return false
		case <-time.After(pause):
			pause = min(2*pause, mostRowsPause)
		}
	}
}

func (p *pilot) nextChunkFile() string { return rowsPrefix + strconv.Itoa(p.chunks+1) }

// Refresh lets this process see what others have put into a directory on a network file
// system: opening it makes a client ask the server, instead of remembering for a while that
// a file is missing.
func Refresh(dir string) {
	if f, err := os.Open(dir); err == nil {
		f.Close()
	}
}

// readChunks reads new chunks. An unreadable one is skipped: its tasks do not start here.
func (p *pilot) readChunks() {
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
func (p *pilot) checkWaiting() {
	p.readChunks()
	p.returnTasks()
	p.endStopped()
	Refresh(p.row)
}

// returnTasks returns the waiting tasks if that was requested, and confirms it.
func (p *pilot) returnTasks() {
	if p.returned {
		p.rows = nil
		return
	}
	if _, err := os.Lstat(filepath.Join(p.dir, returnFile)); err != nil {
		return
	}
	p.returned, p.rows = true, nil
	if err := os.WriteFile(filepath.Join(p.dir, returnedFile), nil, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err) // the end of this process says the same later
	}
}

// endStopped ends the waiting tasks that were stopped: they could wait for long.
func (p *pilot) endStopped() {
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
			fmt.Fprintf(os.Stderr, "task %s: %v\n", row, err) // it will be stopped when it is next
		}
		return err == nil
	})
}
