package simulation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"molrun/app"
	"molrun/app/task"
)

// resultFile is what every program leaves.
const resultFile = "result.txt"

// machine is the scripted executor. It lives on while the service dies and
// comes back, and its tasks go as their fates say.
type machine struct {
	capacity app.Capacity
	fate     func(app.Task) fate
	wall     func() time.Time
	complain func(format string, args ...any)

	mu          sync.Mutex
	unreachable time.Time // until when it does not answer
	tasks       map[string]*living
	starts      map[string]int  // calls of Start that came through, by token
	refused     map[string]bool // tokens whose last Start was an error
	stops       map[string]bool // tokens whose end was asked for
}

// living is a task that came to life.
type living struct {
	app.Task
	fate
	begin, end time.Time // of its process
	cause      app.Cause // "": it is lost
	beganAt    time.Time // as clocks on walls showed it
}

func newMachine(complain func(string, ...any)) *machine {
	return &machine{
		capacity: app.Capacity{CPUs: 4, MemoryBytes: 1 << 30, GPUs: []string{"GPU-a", "GPU-b"}},
		complain: complain,
		tasks:    map[string]*living{},
		starts:   map[string]int{},
		refused:  map[string]bool{},
		stops:    map[string]bool{},
	}
}

func (m *machine) start(t app.Task) (app.Handle, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.fate(t)
	m.starts[t.Token]++
	if m.refused[t.Token] = f.refuses != nil && m.starts[t.Token] <= f.refusals; m.refused[t.Token] {
		return "", f.refuses
	}
	m.inspect(t)
	if f.vanishes {
		return "", nil
	}
	now := time.Now()
	l := &living{Task: t, fate: f, begin: now.Add(f.waits), cause: f.cause, beganAt: m.wall().Add(f.waits)}
	l.end = l.begin.Add(f.runs)
	if f.runs > t.Limit {
		l.end, l.cause = l.begin.Add(t.Limit), app.CauseTimeout
	}
	m.tasks[t.Token] = l
	m.count(now)
	return app.Handle("handle of " + t.Token), leave(t)
}

// inspect looks whether a task may start.
func (m *machine) inspect(t app.Task) {
	spec, err := task.Read(t.Dir)
	switch {
	case err != nil:
		m.complain("task.json of attempt %d: %v", t.Attempt, err)
	case spec.Token != t.Token || spec.Job != string(t.Job) || spec.Attempt != t.Attempt || len(spec.GPUs) != t.Needs.GPUs:
		m.complain("task.json is of another task: %+v", spec)
	case m.tasks[t.Token] != nil:
		m.complain("attempt %d is started twice", t.Attempt)
	}
	if _, err := os.Stat(filepath.Join(t.Dir, task.WorkDir, task.OutDir)); err != nil {
		m.complain("attempt %d has no folder for its output: %v", t.Attempt, err)
	}
}

// count looks at all tasks that live.
func (m *machine) count(now time.Time) {
	jobs, devices := map[app.JobID]int{}, map[string]bool{}
	var cpus int
	var memory int64
	for _, l := range m.tasks {
		if !l.lives(now) {
			continue
		}
		if other, twice := jobs[l.Job]; twice {
			m.complain("attempts %d and %d of one job live at once", other, l.Attempt)
		}
		jobs[l.Job] = l.Attempt
		cpus, memory = cpus+l.Needs.CPUs, memory+l.Needs.MemoryBytes
		for _, d := range l.GPUs {
			if devices[d] {
				m.complain("two tasks use the device %s", d)
			}
			devices[d] = true
		}
	}
	if cpus > m.capacity.CPUs || memory > m.capacity.MemoryBytes {
		m.complain("tasks use %d CPUs and %d bytes of %+v", cpus, memory, m.capacity)
	}
}

func (l *living) lives(now time.Time) bool { return now.Before(l.end) }

// leave writes what the task's program would.
func leave(t app.Task) error {
	return errors.Join(
		os.WriteFile(filepath.Join(t.Dir, task.RunFile), []byte(`{"protocol":1}`), 0o600),
		os.WriteFile(filepath.Join(t.Dir, task.LogFile), []byte("hello\n"), 0o600),
		os.WriteFile(filepath.Join(t.Dir, task.WorkDir, task.OutDir, resultFile), fmt.Append(nil, t.Attempt), 0o600),
	)
}

func (m *machine) status(tasks []app.Task) ([]app.TaskStatus, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if now.Before(m.unreachable) {
		return nil, errors.New("the machine does not answer")
	}
	all := make([]app.TaskStatus, len(tasks))
	for i, t := range tasks {
		all[i] = m.tasks[t.Token].status(now)
	}
	return all, nil
}

// status tells how a task stands. News of an end may come late.
func (l *living) status(now time.Time) app.TaskStatus {
	switch {
	case l == nil:
		return app.TaskStatus{State: app.TaskLost, Reason: "nobody knows of it"}
	case now.Before(l.begin) && now.Before(l.end):
		return app.TaskStatus{State: app.TaskStarting, Reason: "it waits"}
	case now.Before(l.end.Add(l.lag)) && !l.end.Before(l.begin):
		fraction := min(1, float64(now.Sub(l.begin))/float64(max(1, l.end.Sub(l.begin))))
		return app.TaskStatus{State: app.TaskRunning, StartedAt: l.beganAt, Progress: &app.Progress{Fraction: fraction}}
	case l.cause == "":
		return app.TaskStatus{State: app.TaskLost, Reason: "its node went down"}
	}
	return app.TaskStatus{State: app.TaskEnded, StartedAt: l.beganAt, Outcome: l.outcome()}
}

func (l *living) outcome() *app.Outcome {
	o := &app.Outcome{Protocol: task.Protocol, Cause: l.cause, CPUSeconds: 1, EndedAt: l.beganAt.Add(l.end.Sub(l.begin))}
	if !l.end.Before(l.begin) {
		o.StartedAt = l.beganAt
	}
	switch l.cause {
	case app.CauseExit:
		o.ExitCode = 3
	case app.CauseSignal:
		o.Signal = "SIGSEGV"
	}
	return o
}

func (m *machine) stop(t app.Task) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if now.Before(m.unreachable) {
		return errors.New("the machine does not answer")
	}
	m.stops[t.Token] = true
	if l := m.tasks[t.Token]; l != nil {
		if end := now.Add(l.stopTakes); end.Before(l.end) {
			l.end, l.cause = end, app.CauseStopped
		}
	}
	return nil
}

// find gives the task of an attempt, nil where none came to life.
func (m *machine) find(token string) *living {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tasks[token]
}

// startsOf tells how often an attempt was started and whether it was refused
// at last.
func (m *machine) startsOf(token string) (starts int, refused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.starts[token], m.refused[token]
}

// stopAsked reports whether an attempt's end was asked for.
func (m *machine) stopAsked(token string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stops[token]
}

func (m *machine) hide(until time.Time) {
	m.mu.Lock()
	m.unreachable = until
	m.mu.Unlock()
}

// guardedMachine is the machine as one process reaches it.
type guardedMachine struct {
	*machine
	door *door
	site *site

	toldMu sync.Mutex
	begun  map[string]bool      // tokens that the process itself started
	found  map[string]time.Time // when the others were first asked about
	told   map[string]bool      // tokens whose end the process knows
	last   time.Time            // when it was told of one, or began
}

func newGuardedMachine(s *site, d *door) *guardedMachine {
	return &guardedMachine{
		machine: s.machine, door: d, site: s,
		begun: map[string]bool{}, found: map[string]time.Time{}, told: map[string]bool{}, last: time.Now(),
	}
}

var _ app.Executor = (*guardedMachine)(nil)

func (g *guardedMachine) Name() string                   { return "local" }
func (g *guardedMachine) Capacity() (app.Capacity, bool) { return g.capacity, true }

func (g *guardedMachine) Start(ctx context.Context, t app.Task) (h app.Handle, err error) {
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	dead := g.door.around(label{"start", g.site.names.of(t.Job)}, func() error {
		g.toldMu.Lock()
		g.begun[t.Token] = true
		g.toldMu.Unlock()
		h, err = g.start(t)
		return nil
	})
	if dead != nil {
		return "", dead
	}
	return h, err
}

// Status tells of one end at a moment, of none as the process begins or has
// just found the task, and of none whose attempt stands at a door. Otherwise
// goroutines would take up several things at the same moment, or one would
// choose among them, and what came first would not be for the seed to say.
func (g *guardedMachine) Status(_ context.Context, tasks []app.Task) ([]app.TaskStatus, error) {
	if err := g.door.look("how tasks stand"); err != nil {
		return nil, err
	}
	all, err := g.status(tasks)
	if err != nil {
		return nil, err
	}
	g.toldMu.Lock()
	defer g.toldMu.Unlock()
	first, now := -1, time.Now()
	for i, t := range tasks {
		if g.justFound(t, now) || all[i].State < app.TaskEnded || now.Equal(g.last) || g.told[t.Token] || g.door.visited(g.site.names.of(t.Job)) {
			continue
		}
		if first < 0 || t.Job < tasks[first].Job {
			first = i
		}
	}
	for i, t := range tasks {
		if i == first {
			g.told[t.Token], g.last = true, now
		}
		if all[i].State >= app.TaskEnded && !g.told[t.Token] {
			all[i] = app.TaskStatus{State: app.TaskStarting, Reason: "no news"}
		}
	}
	return all, nil
}

// justFound reports whether the process learns only now that there may be such
// a task.
func (g *guardedMachine) justFound(t app.Task, now time.Time) bool {
	if g.begun[t.Token] {
		return false
	}
	if g.found[t.Token].IsZero() {
		g.found[t.Token] = now
	}
	return g.found[t.Token].Equal(now)
}

func (g *guardedMachine) Stop(ctx context.Context, t app.Task) (err error) {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	dead := g.door.around(label{"stop", g.site.names.of(t.Job)}, func() error {
		err = g.stop(t)
		return nil
	})
	if dead != nil {
		return dead
	}
	return err
}
