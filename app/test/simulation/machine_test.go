package simulation

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"sync"
	"time"

	"molrun/app"
	"molrun/app/task"
)

// resultFile is the output file of every program.
const resultFile = "result.txt"

// machine is a scripted executor. Its tasks follow their fates. It keeps running when the
// service dies and restarts.
type machine struct {
	capacity app.Capacity
	fate     func(app.Task) fate
	wall     func() time.Time
	faultf   func(format string, args ...any)

	mu          sync.Mutex
	unreachable time.Time // time until which it does not respond
	tasks       map[string]*startedTask
	starts      map[string]int  // number of calls of Start that arrived, by token
	refused     map[string]bool // tokens whose last Start returned an error
	stops       map[string]bool // tokens for which Stop was called

	workerFate func(name string, n int) workerFate
	nameOf     func(app.JobID) string
	tracef     func(format string, args ...any)
	workers    map[string]*worker // last worker started, by directory
	launches   map[string]int     // number of calls of StartWorker, by the name of the first job
	losses     map[string]int     // number of workers started since a job last ended, by directory
	flights    workerCounts
	sabotage   sabotage
}

// sabotage configures the misbehavior of a broken worker or executor.
type sabotage struct {
	beginsTwice   bool // begins every job twice
	keepsReturned bool // claims to have returned its jobs, but begins them anyway
	stays         bool // never exits
	swaps         bool // reports the end of a job that is running
	loses         bool // reports a running job as lost
}

// startedTask is a task that was started.
type startedTask struct {
	app.Task
	fate
	begin, end time.Time // of the process
	cause      app.Cause // "" if it is lost
	beganAt    time.Time // start of the process by the wall clock

	worker *worker // worker that runs it; nil if it has its own process
	over   bool    // the outcome of a worker's job exists
}

func newMachine(faultf func(string, ...any)) *machine {
	return &machine{
		capacity: app.Capacity{CPUs: 4, MemoryBytes: 1 << 30, GPUs: []string{"GPU-a", "GPU-b"}},
		faultf:   faultf,
		tasks:    map[string]*startedTask{},
		starts:   map[string]int{},
		refused:  map[string]bool{},
		stops:    map[string]bool{},
		workers:  map[string]*worker{},
		launches: map[string]int{},
		losses:   map[string]int{},
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
	t.Handle = m.number(now)
	l := &startedTask{Task: t, fate: f, begin: now.Add(f.waits), cause: f.cause, beganAt: m.wall().Add(f.waits)}
	l.end = l.begin.Add(f.runs)
	if f.runs > t.Limit {
		l.end, l.cause = l.begin.Add(t.Limit), app.CauseTimeout
	}
	m.tasks[t.Token] = l
	m.count(now)
	return t.Handle, leave(t, m.nameOf(t.Job))
}

// number returns the lowest number not used by a running task. As on a cluster, it can be
// the former number of a task that has ended.
func (m *machine) number(now time.Time) app.Handle {
	used := map[app.Handle]bool{}
	for _, l := range m.tasks {
		used[l.Handle] = used[l.Handle] || l.running(now)
	}
	for n := 1; ; n++ {
		if h := app.Handle(fmt.Sprint(n)); !used[h] {
			return h
		}
	}
}

// own returns the started task, or nil if there is none. It checks that the caller does
// not use another task's number for it.
func (m *machine) own(t app.Task) *startedTask {
	l := m.tasks[t.Token]
	if l != nil && t.Handle != "" && t.Handle != l.Handle {
		m.faultf("attempt %d has the number %s, but was requested as %s", t.Attempt, l.Handle, t.Handle)
	}
	return l
}

// inspect checks that a task may start.
func (m *machine) inspect(t app.Task) {
	spec, err := task.ReadSpec(t.Dir)
	switch {
	case err != nil:
		m.faultf("task.json of attempt %d: %v", t.Attempt, err)
	case spec.Token != t.Token || spec.Job != string(t.Job) || spec.Attempt != t.Attempt || len(spec.GPUs) != t.Needs.GPUs || spec.MemoryBytes != t.Needs.MemoryBytes:
		m.faultf("task.json belongs to another task: %+v", spec)
	case m.tasks[t.Token] != nil:
		m.faultf("attempt %d is started twice", t.Attempt)
	}
	if _, err := os.Stat(filepath.Join(t.Dir, task.WorkDir, task.OutDir)); err != nil {
		m.faultf("attempt %d has no output directory: %v", t.Attempt, err)
	}
}

// count checks the resources of all running tasks.
func (m *machine) count(now time.Time) {
	jobs, devices := map[app.JobID]int{}, map[string]bool{}
	var cpus int
	var memory int64
	for _, l := range m.tasks {
		if !l.running(now) {
			continue
		}
		if other, twice := jobs[l.Job]; twice {
			m.faultf("attempts %d and %d of one job overlap", other, l.Attempt)
		}
		jobs[l.Job] = l.Attempt
		cpus, memory = cpus+l.Needs.CPUs, memory+l.Needs.MemoryBytes
		for _, d := range l.Devices.GPUs {
			if devices[d] {
				m.faultf("two tasks use the device %s", d)
			}
			devices[d] = true
		}
	}
	if cpus > m.capacity.CPUs || memory > m.capacity.MemoryBytes {
		m.faultf("tasks use %d CPUs and %d bytes, more than %+v", cpus, memory, m.capacity)
	}
}

func (l *startedTask) running(now time.Time) bool {
	if l.worker != nil {
		return l.worker.row == l
	}
	return now.Before(l.end)
}

// leave writes the files that the task's program would create.
func leave(t app.Task, name string) error {
	return errors.Join(
		os.WriteFile(filepath.Join(t.Dir, task.RunFile), []byte(`{"protocol":1}`), 0o600),
		os.WriteFile(filepath.Join(t.Dir, task.LogFile), []byte("hello\n"), 0o600),
		os.WriteFile(filepath.Join(t.Dir, task.WorkDir, task.OutDir, resultFile), resultOf(name, t.Attempt), 0o600),
	)
}

// resultOf returns the output of a program, which is short and differs between most jobs.
func resultOf(name string, attempt int) []byte {
	h := fnv.New32a()
	h.Write([]byte(name))
	return fmt.Appendf(nil, "%d%02x", attempt, h.Sum32()%256)
}

func (m *machine) status(tasks []app.Task) ([]app.TaskStatus, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if now.Before(m.unreachable) {
		return nil, errors.New("the machine does not respond")
	}
	all := make([]app.TaskStatus, len(tasks))
	for i, t := range tasks {
		if t.Worker != "" {
			all[i] = m.statusOfRow(t, now)
			continue
		}
		all[i] = m.own(t).status(now)
	}
	return all, nil
}

// status returns the status of a task. It can report the end with a delay.
func (l *startedTask) status(now time.Time) app.TaskStatus {
	switch {
	case l == nil:
		return app.TaskStatus{State: app.TaskLost, Reason: "unknown task"}
	case now.Before(l.begin) && now.Before(l.end):
		return app.TaskStatus{State: app.TaskStarting, Reason: "waiting to start"}
	case now.Before(l.end.Add(l.lag)) && !l.end.Before(l.begin):
		fraction := min(1, float64(now.Sub(l.begin))/float64(max(1, l.end.Sub(l.begin))))
		return app.TaskStatus{State: app.TaskRunning, StartedAt: l.beganAt, Progress: &app.Progress{Fraction: fraction}}
	case l.cause == "":
		return app.TaskStatus{State: app.TaskLost, Reason: "its node went down"}
	}
	return app.TaskStatus{State: app.TaskEnded, StartedAt: l.beganAt, Outcome: l.outcome()}
}

func (l *startedTask) outcome() *app.Outcome {
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
		return errors.New("the machine does not respond")
	}
	m.stops[t.Token] = true
	if t.Worker != "" {
		return m.stopRow(t, now)
	}
	if l := m.own(t); l != nil {
		if end := now.Add(l.stopTakes); end.Before(l.end) {
			l.end, l.cause = end, app.CauseStopped
		}
	}
	return nil
}

// find returns the task of an attempt, or nil if none was started.
func (m *machine) find(token string) *startedTask {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tasks[token]
}

// startsOf returns how many times Start was called for an attempt, and whether the last
// call was refused.
func (m *machine) startsOf(token string) (starts int, refused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.starts[token], m.refused[token]
}

// stopAsked reports whether Stop was called for an attempt.
func (m *machine) stopAsked(token string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stops[token]
}

func (m *machine) makeUnreachable(until time.Time) {
	m.mu.Lock()
	m.unreachable = until
	m.mu.Unlock()
}

// guardedMachine is the machine as seen by one process, behind a door.
type guardedMachine struct {
	*machine
	door *door
	site *site

	toldMu sync.Mutex
	begun  map[string]bool      // tokens that this process started
	found  map[string]time.Time // time at which it first queried other tokens
	told   map[string]bool      // tokens whose end has been reported to it
	last   time.Time            // time at which the last end was reported, or at which the process started
}

func newGuardedMachine(s *site, d *door) *guardedMachine {
	return &guardedMachine{
		machine: s.machine, door: d, site: s,
		begun: map[string]bool{}, found: map[string]time.Time{}, told: map[string]bool{}, last: time.Now(),
	}
}

var _ app.Workers = (*guardedMachine)(nil)

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

// Status reports at most one end at a time. It reports none if the process has just
// started or has just found the task, and none for an attempt with a call waiting at a
// door. Otherwise goroutines would handle several ends at the same moment, in an order
// that the seed does not determine.
func (g *guardedMachine) Status(_ context.Context, tasks []app.Task) ([]app.TaskStatus, error) {
	if err := g.door.pollFor("how tasks stand", g.firstOf(tasks)); err != nil {
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
		// Ended tasks come before lost ones, since the runner receives both at once.
		if first < 0 || all[i].State < all[first].State || all[i].State == all[first].State && t.Job < tasks[first].Job {
			first = i
		}
	}
	for i, t := range tasks {
		if all[i].State < app.TaskEnded {
			delete(g.told, t.Token) // a job lost before it has begun gets another worker
		}
		if i == first {
			g.told[t.Token], g.last = true, now
		}
		if all[i].State >= app.TaskEnded && !g.told[t.Token] {
			all[i] = app.TaskStatus{State: app.TaskStarting, Reason: "not reported yet"}
		}
	}
	return all, nil
}

// firstOf returns the name of the first of several tasks, so that simultaneous polls for
// tasks have an order.
func (g *guardedMachine) firstOf(tasks []app.Task) string {
	first := ""
	for _, t := range tasks {
		if name := g.site.names.of(t.Job); first == "" || name < first {
			first = name
		}
	}
	return first
}

// justFound reports whether the process has first queried this task just now and did not
// start the task itself.
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
