package simulation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/job/notice"
	"molrun/app/test/must"
	"molrun/blobs/link"
)

// simulation is the state of a simulation of one seed.
type simulation struct {
	*site
	plan plan

	begin   time.Time
	offset  atomic.Int64 // offset of the wall clock, which can jump, in nanoseconds
	process *process     // nil if none is running
	ledger  *ledger
	history history

	groupFrom map[string]int // length of each organization's history before the current commits
	deleted   map[app.JobID]bool
	uploads   map[app.UploadID]*app.Upload // as last committed
	sendings  []*sending

	hooks   map[string]*notice.Hook     // as last committed
	notices map[string]*notice.Delivery // as last compared
	owed    []*dueMessage               // expected deliveries that have not been compared yet
	told    int                         // number of messages so far

	owedSince map[string]time.Time // time since when each delivery is due, on a clock that never jumps

	requests map[label]*request
	answers  chan func()
	sends    int

	listeners []*listener

	rng *rand.Rand // random choices of the current step

	// Faults that are active or imminent.
	crashIn    int       // number of admitted calls until the process dies; 0 means never
	bootAt     time.Time // when the next process starts
	stopping   *process  // process that was asked to stop
	fullUntil  time.Time
	slowUntil  time.Time
	jumped     time.Time // time of the last clock jump
	stableFrom time.Time // when the runner must have recovered from all faults

	startable map[app.JobID]time.Time // times since when waiting jobs could have started

	changed bool // the store has changed since it was last compared with the ledger
	raised  int  // number of times that a job got more memory
	trace   strings.Builder
	faults  []string // errors found by the checks; the first one ends the simulation
}

// outcome is the result of running a seed.
type outcome struct {
	trace   string
	faults  []string
	flights workerCounts
	raised  int
}

// run runs a plan in a bubble.
func run(t *testing.T, p plan) outcome { return runStalled(t, p, func() {}) }

// runStalled runs a plan with delays in real time.
func runStalled(t *testing.T, p plan, stall func()) (o outcome) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, p)
		s.stall = stall
		s.live()
		o = outcome{trace: s.trace.String(), faults: s.faults, flights: s.machine.flights, raised: s.raised}
	})
	return o
}

func newSimulation(t *testing.T, p plan) *simulation {
	t.Helper()
	dir := scratch(t)
	secret, err := link.LoadSecret(dir)
	must.OK(t, err)
	var all []*algorithm.File
	for _, text := range simFiles {
		a, mistakes := algorithm.Parse("simulated.toml", []byte(text))
		for _, m := range mistakes {
			t.Fatal(m)
		}
		all = append(all, a)
	}
	catalogue, err := algorithm.NewCatalogue(all)
	must.OK(t, err)
	s := &simulation{
		plan: p, begin: time.Now(), ledger: newLedger(), history: history{}, deleted: map[app.JobID]bool{}, uploads: map[app.UploadID]*app.Upload{},
		hooks: map[string]*notice.Hook{}, notices: map[string]*notice.Delivery{}, owedSince: map[string]time.Time{},
		requests: map[label]*request{}, answers: make(chan func(), 1000),
	}
	s.site = &site{
		dir: dir, catalogue: catalogue, secret: secret, reserveAfter: p.reserveAfter,
		wall:   func() time.Time { return time.Now().Add(time.Duration(s.offset.Load())) },
		full:   func() bool { return time.Now().Before(s.fullUntil) },
		faultf: s.faultf, receivers: newReceivers(), limits: limitsOf(p.seed),
	}
	s.machine = newMachine(s.faultf)
	s.machine.wall, s.machine.nameOf, s.machine.tracef = s.wall, s.names.of, s.tracef
	s.machine.workerFate = func(name string, n int) workerFate { return workerFateOf(p.seed, name, n) }
	s.machine.fate = func(t app.Task) fate { return fateOf(p.seed, s.names.of(t.Job), t.Attempt) }
	return s
}

// scratch returns a temporary directory, in memory if possible, because the tests examine
// the order of events rather than the disk.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "simulation-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { must.OK(t, os.RemoveAll(dir)) })
	return dir
}

// live runs the steps of the plan and then waits until all jobs are finished.
func (s *simulation) live() {
	s.boot()
	for i, step := range s.plan.steps {
		if len(s.faults) > 0 {
			break
		}
		s.tracef("-- step %d: %s", i+1, step.kind.name)
		s.rng = step.rng()
		step.kind.do(s)
		s.pass(seconds(s.rng, 2)) // mostly too short for a job to finish
		s.check()
	}
	if len(s.faults) == 0 {
		s.drain()
	}
	if s.process != nil {
		s.crash()
	}
	s.machine.close()
}

// boot starts a process.
func (s *simulation) boot() {
	s.age()
	p, err := s.site.boot()
	if err != nil {
		s.faultf("the service does not start: %v", err)
		return
	}
	s.tracef("a process starts")
	s.machine.flights.adopted += s.machine.runningWorkers()
	s.process, s.changed = p, true
	for _, organization := range organizations {
		s.compareEvents(organization, 0)
	}
	s.unstableUntil(time.Now().Add(seenWithin))
}

// crash ends the process abruptly.
func (s *simulation) crash() {
	s.tracef("the process dies")
	s.absorb()
	if err := s.process.die(); err != nil {
		s.faultf("after a crash: %v", err)
	}
	s.discardProcess()
}

// discardProcess discards a process and its pending requests.
func (s *simulation) discardProcess() {
	s.disconnectListeners()
	s.process, s.stopping, s.crashIn = nil, nil, 0
	s.collect()
	clear(s.requests)
	for _, f := range s.sendings {
		f.using = 0
	}
}

// up waits until a process is running.
func (s *simulation) up() {
	for (s.process == nil || s.stopping != nil) && len(s.faults) == 0 {
		s.pass(time.Second)
	}
}

// pass advances the time by d and runs everything that becomes due.
func (s *simulation) pass(d time.Duration) {
	for end := time.Now().Add(d); len(s.faults) == 0; {
		s.judgeQueue()
		s.judgeLate()
		s.admitDue()
		now := time.Now()
		if s.process == nil && !now.Before(s.bootAt) {
			s.boot()
			continue
		}
		if !now.Before(end) || len(s.faults) > 0 {
			return
		}
		s.sleep(end)
	}
}

// sleep returns when a call arrives at a door, something becomes due, or at the latest at
// until.
func (s *simulation) sleep(until time.Time) {
	var arrived, ended <-chan struct{}
	until = s.machine.moves(until)
	if p := s.process; p == nil {
		until = earlier(until, s.bootAt)
	} else {
		arrived = p.door.arrived
		for _, v := range p.door.visits() {
			until = earlier(until, v.due)
		}
		if s.stopping != nil {
			ended = p.ended
		}
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-arrived:
	case <-ended:
	case <-timer.C:
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// check compares the store and the listings with the ledger.
func (s *simulation) check() {
	if s.process == nil || len(s.faults) > 0 || !s.changed {
		return
	}
	s.changed = false
	if err := s.ledger.compare(s.process.store); err != nil {
		s.faultf("%v", err)
		return
	}
	if err := errors.Join(s.compareUploads(), s.compareNotices()); err != nil {
		s.faultf("%v", err)
		return
	}
	if err := s.ledger.compareListings(s.process); err != nil {
		s.faultf("%v", err)
	}
}

// tracef adds a line to the trace.
func (s *simulation) tracef(format string, args ...any) {
	fmt.Fprintf(&s.trace, "%12v  %s\n", time.Since(s.begin), fmt.Sprintf(format, args...))
}

// faultf records an error found by a check.
func (s *simulation) faultf(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
	s.tracef("WRONG: "+format, args...)
}
