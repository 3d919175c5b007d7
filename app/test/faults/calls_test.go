package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/test/must"
)

// failing is a kind of system call that the test makes fail.
type failing struct {
	name  string
	calls []string
	files string // regular expression for paths relative to the data directory
	note  int    // value of load.note; large, because the database grows by 16 MiB at a time
}

// failingCalls has all kinds of calls with which the service and its tasks write to disk,
// except writes by the jobs' own programs.
var failingCalls = []failing{
	{name: "database write", calls: []string{"pwrite64"}, files: `^jobs\.db$`},
	{name: "database sync", calls: []string{"fdatasync"}, files: `^jobs\.db$`},
	{name: "database growth", calls: []string{"ftruncate"}, files: `^jobs\.db$`, note: 4 << 20},
	{name: "audit write", calls: []string{"write"}, files: `^audit`},
	{name: "counter write", calls: []string{"write"}, files: `^jobs\.db\.commits`},
	{name: "upload create", calls: []string{"openat"}, files: `^uploads/tmp/`},
	{name: "upload reserve", calls: []string{"fallocate"}, files: `^uploads/`},
	{name: "upload write", calls: []string{"write"}, files: `^uploads/`},
	{name: "upload link", calls: []string{"link", "linkat"}, files: `^uploads/`},
	{name: "task write", calls: []string{"write"}, files: `^jobs/[^/]+/[0-9]+/(\.task\.json|work/settings\.json)`},
	{name: "run write", calls: []string{"write"}, files: `/run\.json`},
	{name: "log write", calls: []string{"write", "pwrite64"}, files: `^jobs/[^/]+/[0-9]+/log`},
	{name: "outcome reserve", calls: []string{"openat", "fallocate"}, files: `/\.outcome\.json`},
	{name: "outcome write", calls: []string{"write", "ftruncate"}, files: `/\.outcome\.json`},
	{name: "result write", calls: []string{"write"}, files: `^jobs/[^/]+/[^/]+$`},
	{name: "any create", calls: []string{"openat"}, files: notWork},
	{name: "any sync", calls: []string{"fsync"}, files: notWork},
	{name: "any rename", calls: []string{"rename", "renameat", "renameat2"}, files: notWork},
	{name: "any mkdir", calls: []string{"mkdir", "mkdirat"}, files: ``},
	{name: "any unlink", calls: []string{"unlink", "unlinkat", "rmdir"}, files: ``},
}

// notWork matches all files except those that programs create in their work directories.
const notWork = `^([^j]|jobs\.|jobs/[^/]+/([^0-9]|[0-9]+/([^w]|$)|[0-9]+$))`

// ways has the ways in which a call fails. LASTING means that all later calls also fail
// with EIO.
var ways = map[string]injection{
	"EIO": {Error: syscall.EIO}, "ENOSPC": {Error: syscall.ENOSPC}, "KILL": {}, "LASTING": {Error: syscall.EIO, Lasts: true},
}

// Outcomes of a run with a failing call, as printed in the table.
const (
	notReached   = "-" // there were fewer calls
	startRefused = "s" // the service refused to start and reported an error
	exitStorage  = "x" // the service exited with code 74
	answered     = "r" // the service rejected requests but kept running
	unnoticed    = "." // the service kept running and rejected no request
	killed       = "k" // the service was killed at the call
	wrong        = "!"
)

const legend = "-: not reached  s: start refused  x: exit 74  r: requests refused, kept running  .: kept running  k: killed at the call"

// table collects the outcomes of all runs.
type table struct {
	mu   sync.Mutex
	rows []string
	acks int
}

func (b *table) add(f failing, fault, ends string, l *ledger) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows = append(b.rows, fmt.Sprintf("%-16s %-7s %s", f.name, fault, ends))
	b.acks += l.acknowledged()
}

// Every call that stores something fails in turn: the first, the second and so on. It
// fails once or persistently, or the process is killed at the call.
func TestFailingCallsLoseNothingAcknowledged(t *testing.T) {
	t.Parallel()
	needInjection(t)
	var b table
	t.Run("calls", func(t *testing.T) {
		for _, f := range failingCalls {
			for _, fault := range slices.Sorted(maps.Keys(ways)) {
				t.Run(strings.ReplaceAll(f.name, " ", "_")+"/"+fault, func(t *testing.T) {
					t.Parallel()
					f.campaign(t, fault, &b)
				})
			}
		}
	})
	t.Logf("%s\n%s\nacknowledged %d", legend, strings.Join(slices.Sorted(slices.Values(b.rows)), "\n"), b.acks)
}

// campaign makes the first call fail, then the second and so on, until a run makes fewer
// calls than that.
func (f failing) campaign(t *testing.T, fault string, b *table) {
	s := newServer(t, "", manyCPUs)
	s.start() // creates the key
	s.stop()
	random := rand.New(rand.NewPCG(*seed, uint64(len(f.name))))
	l, v := newLedger(), &verdict{mayFail: true, mayRepeat: true}
	ends, last := "", *positions
	if f.note > 0 {
		last = 1 // such large jobs take up much space
	}
	for n, others := 1, 0; ; n++ {
		o := load{name: fmt.Sprintf("p%d-%d", n, others), clients: 3, jobs: 3, note: f.note, seed: random.Uint64()}
		if f.note > 0 {
			o.jobs = 2 // each change rewrites the whole job
		}
		end, what := f.run(s, fault, n, l, o)
		other := end == notReached && n == 1 && others < 10 // a load might not make the call, so try another
		if other {
			others++
			n--
		} else {
			ends += end
		}
		if end == wrong {
			t.Errorf("%s at call %d of %v (%s): the service ended with %v:\n%s", fault, n, f.calls, what, s.process.ProcessState, s.log.Tail())
		}
		s.prefix = nil
		s.check()
		s.start()
		if !other && (n == last || end == notReached) {
			break
		}
		s.verify(l, v, false)
		v.stop(t)
		if t.Failed() {
			t.Fatalf("after %s at call %d of %v (%s), seed %d", fault, n, f.calls, what, *seed)
		}
		s.kill()
	}
	if ends == notReached {
		t.Errorf("none of the calls %v was made on %s", f.calls, f.files)
	}
	s.conclude(l, v)
	b.add(f, fault, ends, l)
}

// run runs the service once with a failing call. It returns the outcome and the call that
// failed.
func (f failing) run(s *server, fault string, n int, l *ledger, o load) (end, what string) {
	s.t.Helper()
	in := ways[fault]
	in.Calls, in.Files, in.Dir, in.When, in.Trace = f.calls, f.files, s.data, n, s.path(fmt.Sprintf("trace%d", n))
	s.prefix = in.prefix(s.t)
	before := l.refusedAnswers()
	err := s.begin()
	if err == nil {
		acks := 30
		if f.note > 0 {
			acks = 15 // each of these is expensive
		}
		s.loadUntil(l, o, acks, 0, func() {})
		for again := 0; again < 4 && f.note > 0 && !in.made() && !s.ended(); again++ { // few responses were to requests with large jobs
			o.name += "+"
			s.loadUntil(l, o, acks, 0, func() {})
		}
		c := s.client()
		must.Become(s.t, "the call was made or all jobs have finished", func() bool {
			return s.ended() || in.made() || idle(s.t.Context(), c)
		})
	}
	alive := !s.ended()
	if alive {
		signalErr := s.process.Process.Signal(syscall.SIGTERM)
		if alive = !errors.Is(signalErr, os.ErrProcessDone); alive { // the process might have just exited
			must.OK(s.t, signalErr)
		}
		s.await()
	}
	text, readErr := os.ReadFile(in.Trace)
	must.OK(s.t, readErr)
	what, _, _ = strings.Cut(string(text), "\n")
	return f.judge(fault, s.process.ProcessState.Sys().(syscall.WaitStatus), what != "", err == nil, alive, l.refusedAnswers() > before), what
}

// idle reports whether no job is queued or running. It pauses first because
// listing large jobs is expensive.
func idle(ctx context.Context, c *client.Client) bool {
	time.Sleep(100 * time.Millisecond)
	for _, status := range []string{"QUEUED", "RUNNING"} {
		for range c.Jobs(ctx, client.JobFilter{WholeOrganization: true, Status: status, PageSize: 1}) {
			return false // there is an unfinished job, or the request failed
		}
	}
	return true
}

// judge classifies the outcome of a run. It returns wrong if the outcome is not allowed.
func (f failing) judge(fault string, status syscall.WaitStatus, reached, started, alive, refused bool) string {
	switch {
	case status.Signaled() && status.Signal() == syscall.SIGKILL && fault == "KILL":
		return killed
	case !reached:
		return f.expect(started && alive && status.ExitStatus() == 0, notReached)
	case !started:
		return f.expect(status.ExitStatus() == 1 || status.ExitStatus() == 74, startRefused)
	case !alive:
		return f.expect(status.ExitStatus() == 74 && f.mayEnd(fault), exitStorage)
	case f.name == "database sync":
		return wrong // after a failed sync, the content of the file is unknown
	case refused:
		return answered
	}
	return f.expect(status.ExitStatus() == 0, unnoticed)
}

func (failing) expect(ok bool, end string) string {
	if ok {
		return end
	}
	return wrong
}

// mayEnd reports whether the service is allowed to exit. It is if it can no longer trust
// its database, but not because the disk is full or because of another file.
func (f failing) mayEnd(fault string) bool {
	return f.name == "database sync" || strings.HasPrefix(f.name, "database") && fault != "ENOSPC"
}

// refusedAnswers returns the number of error responses so far.
func (l *ledger) refusedAnswers() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, count := range l.refusals {
		n += count
	}
	return n
}
