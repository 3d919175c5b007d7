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

// The times of a simulated pilot. They are not those of a real one, so that events rarely
// coincide.
const (
	idleLook  = 17 * time.Millisecond
	rowLook   = 97 * time.Millisecond
	idleLimit = 10 * time.Second
	// longRow is the runner's LongRow.
	longRow = 3 * time.Second
)

// pilot is a simulated process that runs rows one after the other. It lives by the files of
// package task, as the real one does, and like the machine it survives the service. It moves
// only while all else waits, so that the seed determines which files it finds.
type pilot struct {
	dir  string
	name string   // of its first row, and its number: the same in every run of a seed
	like app.Task // what all of its rows need
	fate pilotFate
	lock *os.File

	next, idle, dies time.Time // when it moves next, had work last, dies at the latest
	steps            int       // taken with files
	portions         int       // read
	rows             []string  // to be run
	row              *startedTask
	returned, gone   bool
}

// pilotFate is the script of a pilot.
type pilotFate struct {
	refuses  error         // that StartPilot returns
	vanishes bool          // StartPilot returns no error, but there is no process
	dies     time.Duration // how long it lives at most; 0: as long as it is needed
	diesAt   int           // the step with files before which it dies; 0: none
	slow     time.Duration // how much later it looks at its files
}

var pilotRefusals = append([]error{fault.Errorf(fault.Invalid, "the machine will never run them")}, refusals...)

// pilotFateOf returns the fate of the n-th pilot that is started for a first row.
func pilotFateOf(seed uint64, name string, n int) (f pilotFate) {
	h := fnv.New64a()
	h.Write([]byte(name))
	rng := rand.New(rand.NewPCG(seed^h.Sum64(), uint64(1000+n)))
	switch rng.IntN(14) {
	case 0:
		f.refuses = pilotRefusals[rng.IntN(len(pilotRefusals))]
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

// flights counts what has happened to pilots: portions that came later, rows that were lost
// while they ran, that pilots returned, that came back to the queue, and that were stopped before
// their turn, pilots that flew when the service started.
type flights struct {
	pilots, rows, portions, pulled, died, lost, returned, givenBack, stopped, refused, adopted int
}

func (f *flights) add(g flights) {
	f.pilots, f.rows, f.portions, f.pulled = f.pilots+g.pilots, f.rows+g.rows, f.portions+g.portions, f.pulled+g.pulled
	f.died, f.lost, f.returned, f.givenBack = f.died+g.died, f.lost+g.lost, f.returned+g.returned, f.givenBack+g.givenBack
	f.stopped, f.refused, f.adopted = f.stopped+g.stopped, f.refused+g.refused, f.adopted+g.adopted
}

// startPilot is StartPilot.
func (m *machine) startPilot(dir string, t app.Task, rows []string) error {
	name := m.nameOf(t.Job)
	m.mu.Lock()
	if p := m.pilots[dir]; p != nil && !p.gone {
		m.mu.Unlock()
		return nil
	}
	m.mu.Unlock()
	lock, err := task.Lock(dir) // not with the mutex, for it may wait
	if err != nil {
		m.faultf("the directory of a pilot that is gone: %v", err)
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.launches[name]++
	f := m.pilotFate(name, m.launches[name])
	if f.refuses != nil {
		m.flights.refused++
		m.refuseRows(rows, f.refuses)
		return errors.Join(f.refuses, lock.Close())
	}
	if err := errors.Join(task.ClearPilot(dir), task.FeedPilot(dir, 1, rows)); err != nil {
		return errors.Join(err, lock.Close())
	}
	now := time.Now()
	p := &pilot{dir: dir, name: fmt.Sprintf("%s, pilot %d", name, m.launches[name]), like: t, fate: f, lock: lock, next: now.Add(idleLook), idle: now}
	if f.dies > 0 {
		p.dies = now.Add(f.dies)
	}
	m.pilots[dir] = p
	m.losses[dir]++ // as long as it is not known better
	m.flights.pilots++
	m.tracef("%s starts with %d rows", p.name, len(rows))
	if f.vanishes {
		m.kill(p)
	}
	return nil
}

// refuseRows notes rows that can never start, if the error says so.
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

// land is ShutdownPilot.
func (m *machine) land(dir string) (gone bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Now().Before(m.unreachable) {
		return false, errors.New("the machine does not answer")
	}
	if err := task.ClosePilot(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	p := m.pilots[dir]
	return p == nil || p.gone, nil
}

// move lets the pilots do what they have to by now.
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

// flying returns how many pilots live.
func (m *machine) flying() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pilots {
		if !p.gone {
			n++
		}
	}
	return n
}

// moves returns when the next pilot moves, or the given time if that is earlier.
func (m *machine) moves(until time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.mover(); p != nil {
		return earlier(until, p.next)
	}
	return until
}

// mover returns the pilot that moves next, nil if none lives.
func (m *machine) mover() (next *pilot) {
	for _, p := range m.pilots {
		if !p.gone && (next == nil || p.next.Before(next.next) || p.next.Equal(next.next) && p.name < next.name) {
			next = p
		}
	}
	return next
}

// moveOne does one round of a pilot: it ends its row, looks at its files, begins a row.
func (m *machine) moveOne(p *pilot, now time.Time) {
	if !p.dies.IsZero() && !now.Before(p.dies) {
		m.kill(p)
		return
	}
	if p.row != nil && !now.Before(p.row.end) {
		m.endRow(p)
	}
	m.look(p, now)
	if p.row == nil && !p.gone {
		m.beginRow(p, now)
	}
	p.next = now.Add(p.fate.slow + idleLook)
	if m.sabotage.stays {
		p.next = now.Add(time.Minute) // it has hours
	}
	if p.row != nil {
		p.next = earlier(now.Add(p.fate.slow+rowLook), p.row.end)
	}
	if !p.dies.IsZero() {
		p.next = earlier(p.next, p.dies)
	}
}

// look reads what the pilot is told by files.
func (m *machine) look(p *pilot, now time.Time) {
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

// endStopped ends a row whose turn has not come.
func (m *machine) endStopped(p *pilot, dir string, now time.Time) {
	l := m.take(p, dir)
	if l == nil || m.steps(p) {
		return
	}
	m.flights.stopped++
	l.cause, l.end, l.begin = app.CauseStopped, now, now.Add(1) // it never began
	m.tasks[l.Token] = l
	m.leaveOutcome(p, l)
}

// take takes a row out of a pilot's list, and returns it as a task.
func (m *machine) take(p *pilot, dir string) *startedTask {
	i := slices.Index(p.rows, dir)
	p.rows = slices.Delete(p.rows, i, i+1)
	spec, err := task.ReadSpec(dir)
	if err != nil {
		m.faultf("%s: task.json of a row: %v", p.name, err)
		return nil
	}
	l := &startedTask{Task: p.like, pilot: p}
	l.Job, l.Attempt, l.Token, l.Dir, l.Handle = app.JobID(spec.Job), spec.Attempt, spec.Token, dir, ""
	l.fate = m.fate(l.Task)
	l.cause = l.fate.cause
	return l
}

// beginRow begins the next row. Without one the pilot waits, or ends.
func (m *machine) beginRow(p *pilot, now time.Time) {
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

// endRow ends the row that runs.
func (m *machine) endRow(p *pilot) {
	l := p.row
	if l.cause == "" || m.steps(p) {
		m.kill(p) // which takes the row along
		return
	}
	m.leaveOutcome(p, l)
	p.row, p.idle = nil, time.Now()
	if l.cause == app.CauseInterrupted { // the machine ends
		m.quit(p)
		return
	}
	m.steps(p)
}

// leaveOutcome writes how a row has ended.
func (m *machine) leaveOutcome(p *pilot, l *startedTask) {
	l.over = true
	o := l.outcome()
	o.Unsynced = "this boot"
	text, err := json.Marshal(o)
	m.must(errors.Join(err, os.WriteFile(filepath.Join(l.Dir, task.OutcomeFile), text, 0o600)))
	m.losses[p.dir] = 0
	m.tracef("%s: %s, attempt %d, ends with %s", p.name, m.nameOf(l.Job), l.Attempt, l.cause)
}

// steps takes a step with files, and reports whether the pilot dies before that.
func (m *machine) steps(p *pilot) (dies bool) {
	if p.steps++; p.steps == p.fate.diesAt {
		m.kill(p)
	}
	return p.gone
}

// kill ends a pilot without warning, and what it runs with it.
func (m *machine) kill(p *pilot) {
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

// quit ends a pilot that has nothing to do.
func (m *machine) quit(p *pilot) {
	m.tracef("%s quits", p.name)
	m.end(p)
}

func (m *machine) end(p *pilot) {
	p.gone = true
	m.must(p.lock.Close())
}

func (m *machine) must(err error) {
	if err != nil {
		m.faultf("the machine: %v", err)
	}
}

// close lets go of what the pilots hold.
func (m *machine) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pilots {
		if !p.gone {
			m.end(p)
		}
	}
}

// statusOfRow is status for a task in a pilot.
func (m *machine) statusOfRow(t app.Task, now time.Time) app.TaskStatus {
	l, p := m.own(t), m.pilots[t.Pilot]
	if m.sabotage.swaps && p != nil && l != nil && !l.over {
		for _, other := range m.tasks {
			if other.pilot == p && other.over {
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
	return app.TaskStatus{State: app.TaskLost, Reason: "the process that was to run it is gone"}
}

// stopRow is stop for a task in a pilot.
func (m *machine) stopRow(t app.Task, now time.Time) error {
	if task.Exists(t.Dir, task.OutcomeFile) {
		return nil
	}
	if _, err := task.RequestStop(t.Dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if l := m.tasks[t.Token]; l != nil && l.pilot.row == l {
		if end := now.Add(l.stopTakes); end.Before(l.end) {
			l.end, l.cause = end, app.CauseStopped
			l.pilot.next = earlier(l.pilot.next, end)
		}
	}
	return nil
}

// mayBegin reports whether a pilot that lives may still begin the task of a directory.
func (m *machine) mayBegin(dir string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pilots {
		if !p.gone && !p.returned && slices.Contains(p.rows, dir) {
			return true
		}
	}
	return false
}

// lossesOf returns how many processes of a pilot were started since a row has ended.
func (m *machine) lossesOf(dir string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.losses[dir]
}

// StartPilot starts a pilot. The answer is lost if the service dies meanwhile.
func (g *guardedMachine) StartPilot(ctx context.Context, dir string, t app.Task, rows []string) (err error) {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	dead := g.door.around(label{"pilot", g.site.names.of(t.Job)}, func() error {
		err = g.startPilot(dir, t, rows)
		return nil
	})
	if dead != nil {
		return dead
	}
	return err
}

// ShutdownPilot is a poll: it is repeated until the pilot is gone.
func (g *guardedMachine) ShutdownPilot(_ context.Context, dir string) (gone bool, err error) {
	if err := g.door.pollFor("landing", g.pilotName(dir)); err != nil {
		return false, err
	}
	return g.land(dir)
}

func (m *machine) pilotName(dir string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.pilots[dir]; p != nil {
		return p.name
	}
	return "a pilot that never was"
}
