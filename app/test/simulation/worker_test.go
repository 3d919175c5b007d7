package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/task"
)

// Intervals of a simulated worker. They differ from those of a real one, so that events
// rarely coincide.
const (
	idleLook  = 17 * time.Millisecond
	rowLook   = 97 * time.Millisecond
	idleLimit = 10 * time.Second
	// longRow equals the runner's LongRow.
	longRow = 3 * time.Second
)

// worker is a simulated process that runs jobs one after the other. Like a real worker,
// it communicates through the files of package task and survives the service. It acts
// only while no call of the service is running, so that the seed determines which files
// it finds.
type worker struct {
	dir  string
	name string   // name of the first job with a number; the same in every run of a seed
	like app.Task // task with the requirements that all its jobs share
	fate workerFate
	lock *os.File

	next, idle, dies time.Time // when it acts next, when it last had work, and when it dies at the latest
	steps            int       // number of steps with files
	portions         int       // number of chunks read
	rows             []string  // jobs left to run
	row              *startedTask
	returned, gone   bool
}

// workerFate is the script that a worker follows.
type workerFate struct {
	refuses  error         // the error that StartWorker returns, if any
	vanishes bool          // StartWorker returns no error, but there is no process
	dies     time.Duration // maximum lifetime; 0 means unlimited
	diesAt   int           // number of the step with files before which it dies; 0 means none
	slow     time.Duration // additional delay before it checks its files
}

var workerRefusals = append([]error{fault.Errorf(fault.Invalid, "the machine will never run them")}, refusals...)

// workerFateOf returns the fate of the n-th worker that is started for a first job.
func workerFateOf(seed uint64, name string, n int) (f workerFate) {
	h := fnv.New64a()
	h.Write([]byte(name))
	rng := rand.New(rand.NewPCG(seed^h.Sum64(), uint64(1000+n)))
	switch rng.IntN(14) {
	case 0:
		f.refuses = workerRefusals[rng.IntN(len(workerRefusals))]
	case 1:
		f.vanishes = true
	case 2, 3:
		f.dies = seconds(rng, 2)
	case 4, 5, 6:
		f.diesAt = 1 + rng.IntN(20)
	case 7:
		f.slow = seconds(rng, 1)
	}
	return f
}

// workerCounts counts the events of workers. portions are chunks after the first, lost
// are jobs lost while running, returned are jobs that workers returned, givenBack are
// jobs returned to the queue, stopped are jobs stopped before they began, and adopted are
// workers that were running when the service started.
type workerCounts struct {
	workers, rows, portions, pulled, died, lost, returned, givenBack, stopped, refused, adopted int
}

func (f *workerCounts) add(g workerCounts) {
	f.workers, f.rows, f.portions, f.pulled = f.workers+g.workers, f.rows+g.rows, f.portions+g.portions, f.pulled+g.pulled
	f.died, f.lost, f.returned, f.givenBack = f.died+g.died, f.lost+g.lost, f.returned+g.returned, f.givenBack+g.givenBack
	f.stopped, f.refused, f.adopted = f.stopped+g.stopped, f.refused+g.refused, f.adopted+g.adopted
}

// startWorker implements StartWorker.
func (m *machine) startWorker(dir string, t app.Task, rows []string) error {
	name := m.nameOf(t.Job)
	m.mu.Lock()
	if p := m.workers[dir]; p != nil && !p.gone {
		m.mu.Unlock()
		return nil
	}
	m.mu.Unlock()
	lock, err := task.Lock(dir) // outside the mutex, because it can block
	if err != nil {
		m.faultf("the directory of an exited worker: %v", err)
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.launches[name]++
	f := m.workerFate(name, m.launches[name])
	if f.refuses != nil {
		m.flights.refused++
		m.refuseRows(rows, f.refuses)
		return errors.Join(f.refuses, lock.Close())
	}
	if err := errors.Join(task.ClearWorker(dir), task.AssignTasks(dir, 1, rows)); err != nil {
		return errors.Join(err, lock.Close())
	}
	now := time.Now()
	p := &worker{dir: dir, name: fmt.Sprintf("%s, worker %d", name, m.launches[name]), like: t, fate: f, lock: lock, next: now.Add(idleLook), idle: now}
	if f.dies > 0 {
		p.dies = now.Add(f.dies)
	}
	m.workers[dir] = p
	m.losses[dir]++ // reset when a job ends
	m.flights.workers++
	m.tracef("%s starts with %d rows", p.name, len(rows))
	if f.vanishes {
		m.kill(p)
	}
	return nil
}

// refuseRows records that the jobs can never start, if that is what the error says.
func (m *machine) refuseRows(rows []string, err error) {
	if fault.CodeOf(err) != fault.Invalid {
		return
	}
	for _, dir := range rows {
		if spec, err := task.ReadSpec(dir); err == nil {
			m.refused[spec.Token] = true
		}
	}
}

// shutdownWorker implements ShutdownWorker.
func (m *machine) shutdownWorker(dir string) (gone bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Now().Before(m.unreachable) {
		return false, errors.New("the machine does not respond")
	}
	if err := task.CloseWorker(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	p := m.workers[dir]
	return p == nil || p.gone, nil
}

// move lets the workers act up to the current time.
func (m *machine) move() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for now := time.Now(); ; {
		p := m.mover()
		if p == nil || p.next.After(now) {
			return
		}
		m.moveOne(p, now)
	}
}

// runningWorkers returns the number of running workers.
func (m *machine) runningWorkers() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.workers {
		if !p.gone {
			n++
		}
	}
	return n
}

// moves returns the time at which the next worker acts, or until if that is earlier.
func (m *machine) moves(until time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.mover(); p != nil {
		return earlier(until, p.next)
	}
	return until
}

// mover returns the worker that acts next, or nil if none is running.
func (m *machine) mover() (next *worker) {
	for _, p := range m.workers {
		if !p.gone && (next == nil || p.next.Before(next.next) || p.next.Equal(next.next) && p.name < next.name) {
			next = p
		}
	}
	return next
}

// moveOne lets a worker act once: it ends its job, checks its files and begins a job.
func (m *machine) moveOne(p *worker, now time.Time) {
	if !p.dies.IsZero() && !now.Before(p.dies) {
		m.kill(p)
		return
	}
	if p.row != nil && !now.Before(p.row.end) {
		m.endRow(p)
	}
	m.readInstructions(p, now)
	if p.row == nil && !p.gone {
		m.beginRow(p, now)
	}
	p.next = now.Add(p.fate.slow + idleLook)
	if m.sabotage.stays {
		p.next = now.Add(time.Minute) // its own time limit is hours
	}
	if p.row != nil {
		p.next = earlier(now.Add(p.fate.slow+rowLook), p.row.end)
	}
	if !p.dies.IsZero() {
		p.next = earlier(p.next, p.dies)
	}
}

// readInstructions reads the worker's instructions from its files.
func (m *machine) readInstructions(p *worker, now time.Time) {
	for !p.gone {
		text, err := os.ReadFile(filepath.Join(p.dir, fmt.Sprintf("rows.%d", p.portions+1)))
		if err != nil {
			break
		}
		var portion struct{ Rows []string }
		if err := json.Unmarshal(text, &portion); err != nil || len(portion.Rows) == 0 {
			m.faultf("%s: portion %d is %q", p.name, p.portions+1, text)
		}
		p.portions++
		m.flights.portions++
		p.rows = append(p.rows, portion.Rows...)
		if m.sabotage.beginsTwice {
			p.rows = append(p.rows, portion.Rows[0])
		}
	}
	if !p.returned && !p.gone && task.Exists(p.dir, "return") && !m.steps(p) {
		p.returned = true
		m.flights.returned += len(p.rows)
		if !m.sabotage.keepsReturned {
			p.rows = nil
		}
		m.must(os.WriteFile(filepath.Join(p.dir, "returned"), nil, 0o600))
		m.tracef("%s returns its rows", p.name)
	}
	if p.returned && !m.sabotage.keepsReturned {
		p.rows = nil
	}
	for _, dir := range slices.Clone(p.rows) {
		if !p.gone && task.StopRequested(dir) && !task.Exists(dir, task.RunFile) && !task.Exists(dir, task.OutcomeFile) {
			m.endStopped(p, dir, now)
		}
	}
}

// endStopped ends a job that was stopped before it began.
func (m *machine) endStopped(p *worker, dir string, now time.Time) {
	l := m.take(p, dir)
	if l == nil || m.steps(p) {
		return
	}
	m.flights.stopped++
	l.cause, l.end, l.begin = app.CauseStopped, now, now.Add(1) // ends before it begins, because it never ran
	m.tasks[l.Token] = l
	m.leaveOutcome(p, l)
}

// take removes a job from a worker's list and returns it as a task.
func (m *machine) take(p *worker, dir string) *startedTask {
	i := slices.Index(p.rows, dir)
	p.rows = slices.Delete(p.rows, i, i+1)
	spec, err := task.ReadSpec(dir)
	if err != nil {
		m.faultf("%s: task.json of a row: %v", p.name, err)
		return nil
	}
	l := &startedTask{Task: p.like, worker: p}
	l.Job, l.Attempt, l.Token, l.Dir, l.Handle = app.JobID(spec.Job), spec.Attempt, spec.Token, dir, ""
	l.fate = m.fate(l.Task)
	l.cause = l.fate.cause
	return l
}

// beginRow begins the next job. If there is none, the worker waits or exits.
func (m *machine) beginRow(p *worker, now time.Time) {
	if len(p.rows) == 0 {
		closed := task.Exists(p.dir, "closed") && !task.Exists(p.dir, fmt.Sprintf("rows.%d", p.portions+1))
		if m.sabotage.stays {
			return
		}
		if p.returned || closed || now.Sub(p.idle) >= idleLimit {
			m.quit(p)
		}
		return
	}
	l := m.take(p, p.rows[0])
	if l == nil || m.steps(p) {
		return
	}
	m.inspect(l.Task)
	if task.Exists(l.Dir, task.RunFile) || task.Exists(l.Dir, task.OutcomeFile) {
		m.faultf("%s: attempt %d of %s has begun before", p.name, l.Attempt, m.nameOf(l.Job))
	}
	l.begin, l.beganAt = now, m.wall()
	l.end = now.Add(l.runs)
	if limit := l.Limit; l.runs > limit {
		l.end, l.cause = now.Add(limit), app.CauseTimeout
	}
	m.tasks[l.Token], p.row = l, l
	m.flights.rows++
	m.tracef("%s begins %s, attempt %d", p.name, m.nameOf(l.Job), l.Attempt)
	m.count(now)
	m.must(leave(l.Task, m.nameOf(l.Job)))
	m.steps(p)
}

// endRow ends the running job.
func (m *machine) endRow(p *worker) {
	l := p.row
	if l.cause == "" || m.steps(p) {
		m.kill(p) // also ends the job
		return
	}
	m.leaveOutcome(p, l)
	p.row, p.idle = nil, time.Now()
	if l.cause == app.CauseInterrupted { // the machine is shutting down
		m.quit(p)
		return
	}
	m.steps(p)
}

// leaveOutcome writes the outcome of a job.
func (m *machine) leaveOutcome(p *worker, l *startedTask) {
	l.over = true
	o := l.outcome()
	o.Unsynced = "this boot"
	text, err := json.Marshal(o)
	m.must(errors.Join(err, os.WriteFile(filepath.Join(l.Dir, task.OutcomeFile), text, 0o600)))
	m.losses[p.dir] = 0
	m.tracef("%s: %s, attempt %d, ends with %s", p.name, m.nameOf(l.Job), l.Attempt, l.cause)
}

// steps counts a step with files, and reports whether the worker has died before it.
func (m *machine) steps(p *worker) (dies bool) {
	if p.steps++; p.steps == p.fate.diesAt {
		m.kill(p)
	}
	return p.gone
}

// kill ends a worker and its running job abruptly.
func (m *machine) kill(p *worker) {
	if p.gone {
		return
	}
	m.tracef("%s dies", p.name)
	m.flights.died++
	if p.row != nil {
		m.flights.lost++
		p.row.cause, p.row.end = "", earlier(p.row.end, time.Now())
		p.row = nil
	}
	m.end(p)
}

// quit makes an idle worker exit.
func (m *machine) quit(p *worker) {
	m.tracef("%s quits", p.name)
	m.end(p)
}

func (m *machine) end(p *worker) {
	p.gone = true
	m.must(p.lock.Close())
}

func (m *machine) must(err error) {
	if err != nil {
		m.faultf("the machine: %v", err)
	}
}

// close releases the resources of the workers.
func (m *machine) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.workers {
		if !p.gone {
			m.end(p)
		}
	}
}

// statusOfRow is like status, for a task in a worker.
func (m *machine) statusOfRow(t app.Task, now time.Time) app.TaskStatus {
	l, p := m.own(t), m.workers[t.Worker]
	if m.sabotage.swaps && p != nil && l != nil && !l.over {
		for _, other := range m.tasks {
			if other.worker == p && other.over {
				l = other
			}
		}
	}
	lives := p != nil && !p.gone
	switch {
	case l != nil && l.over:
		return app.TaskStatus{State: app.TaskEnded, StartedAt: l.outcome().StartedAt, Outcome: l.outcome()}
	case l != nil && lives && p.row == l && !m.sabotage.loses:
		return app.TaskStatus{State: app.TaskRunning, StartedAt: l.beganAt}
	case l != nil:
		return app.TaskStatus{State: app.TaskLost, Reason: "the process that ran it was killed"}
	case lives:
		return app.TaskStatus{State: app.TaskStarting}
	}
	return app.TaskStatus{State: app.TaskLost, Reason: "its worker process has exited"}
}

// stopRow is like stop, for a task in a worker.
func (m *machine) stopRow(t app.Task, now time.Time) error {
	if task.Exists(t.Dir, task.OutcomeFile) {
		return nil
	}
	if _, err := task.RequestStop(t.Dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if l := m.tasks[t.Token]; l != nil && l.worker.row == l {
		if end := now.Add(l.stopTakes); end.Before(l.end) {
			l.end, l.cause = end, app.CauseStopped
			l.worker.next = earlier(l.worker.next, end)
		}
	}
	return nil
}

// mayBegin reports whether a running worker might still begin the task in the given
// directory.
func (m *machine) mayBegin(dir string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.workers {
		if !p.gone && !p.returned && slices.Contains(p.rows, dir) {
			return true
		}
	}
	return false
}

// lossesOf returns the number of processes that were started for a worker's directory
// since a job last ended.
func (m *machine) lossesOf(dir string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.losses[dir]
}

// StartWorker starts a worker. If the service dies at the second visit, the response is
// lost.
func (g *guardedMachine) StartWorker(ctx context.Context, dir string, t app.Task, rows []string) (err error) {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	dead := g.door.around(label{"worker", g.site.names.of(t.Job)}, func() error {
		err = g.startWorker(dir, t, rows)
		return nil
	})
	if dead != nil {
		return dead
	}
	return err
}

// ShutdownWorker is a poll, which the runner repeats until the worker has exited.
func (g *guardedMachine) ShutdownWorker(_ context.Context, dir string) (gone bool, err error) {
	if err := g.door.pollFor("landing", g.workerName(dir)); err != nil {
		return false, err
	}
	return g.shutdownWorker(dir)
}

func (m *machine) workerName(dir string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.workers[dir]; p != nil {
		return p.name
	}
	return "a worker that never was"
}
