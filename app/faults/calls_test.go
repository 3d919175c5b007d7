package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// failing is a kind of system call that is made to fail.
type failing struct {
	name  string
	calls string   // as strace names them
	aim   []string // paths below the data directory; none: wherever the program and its tasks call
	note  int      // load.note: the database grows by 16 MiB at a time
}

// failingCalls are those by which anything gets onto a disk. Plain writes are
// not among them: strace can't tell those into files of changing names from
// those into sockets. A full disk makes them fail in TestFullDisk.
var failingCalls = []failing{
	{name: "database write", calls: "pwrite64", aim: []string{"jobs.db"}},
	{name: "database sync", calls: "fdatasync", aim: []string{"jobs.db"}},
	{name: "database growth", calls: "ftruncate", aim: []string{"jobs.db"}, note: 2 << 20},
	{name: "upload create", calls: "openat", aim: []string{"uploads/tmp"}},
	{name: "upload reserve", calls: "fallocate"},
	{name: "upload link", calls: "linkat"},
	{name: "any sync", calls: "fsync"},
	{name: "any rename", calls: "rename,renameat,renameat2"},
	{name: "any mkdir", calls: "mkdir,mkdirat"},
	{name: "any unlink", calls: "unlink,unlinkat"},
}

// How a run with a failing call ended, as the table shows it.
const (
	notReached   = "-" // the call was not made as often
	startRefused = "s" // the service did not start, and said so
	exitStorage  = "x" // the service ended with 74
	answered     = "r" // requests were refused, the service went on
	unnoticed    = "." // the service went on, no request was refused
	killed       = "k" // the service was killed at the call
	wrong        = "!"
)

const legend = "-: not reached  s: start refused  x: exit 74  r: requests refused, went on  .: went on  k: killed at the call"

// table gathers how the runs ended.
type table struct {
	mu   sync.Mutex
	rows []string
	acks int
	sum  verdict
}

func (b *table) add(f failing, fault, ends string, l *ledger, v *verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows = append(b.rows, fmt.Sprintf("%-16s %-7s %s", f.name, fault, ends))
	b.acks += l.acknowledged()
	b.sum.lost = append(b.sum.lost, v.lost...)
	b.sum.duplicated = append(b.sum.duplicated, v.duplicated...)
	b.sum.stuck = append(b.sum.stuck, v.stuck...)
	b.sum.orphans = append(b.sum.orphans, v.orphans...)
}

// Every call that stores something fails once, at its first, second, third
// time and so on; or the service dies there.
func TestFailingCallsLoseNothingThatWasAcknowledged(t *testing.T) {
	if *positions == 0 {
		t.Skip("runs with -positions")
	}
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err == nil {
		err = exec.Command(strace, "-qq", "-e", "trace=none", "true").Run()
	}
	if err != nil {
		lacks(t, "strace can't trace here: %v", err)
	}
	var b table
	t.Run("calls", func(t *testing.T) {
		for _, f := range failingCalls {
			for _, fault := range []string{"EIO", "ENOSPC", "KILL"} {
				t.Run(strings.ReplaceAll(f.name, " ", "_")+"/"+fault, func(t *testing.T) {
					t.Parallel()
					f.campaign(t, strace, fault, &b)
				})
			}
		}
	})
	t.Logf("%s\n%s\nacknowledged %d, %v", legend, strings.Join(b.rows, "\n"), b.acks, &b.sum)
}

// campaign makes the call fail at one position after the other.
func (f failing) campaign(t *testing.T, strace, fault string, b *table) {
	s := newServer(t, "", "[runner]\ncpus = 8\nmemory = \"1GiB\"\ngrace = \"1s\"\n")
	s.start() // for the key
	s.stop()
	random := rand.New(rand.NewPCG(*seed, uint64(len(f.name))))
	l, v := newLedger(), &verdict{mayFail: true, mayRepeat: true}
	ends, last := "", *positions
	if f.note > 0 {
		last = 1 // jobs this large add up
	}
	for n := 1; n <= last; n++ {
		o := load{life: fmt.Sprintf("p%d", n), clients: 3, jobs: 3, note: f.note, seed: random.Uint64()}
		end := f.run(s, strace, fault, n, l, o)
		ends += end
		if end == wrong {
			t.Errorf("%s of the %d. %s ends with %v:\n%s", fault, n, f.calls, s.process.ProcessState, s.log.tail())
		}
		s.prefix = nil
		s.check()
		s.start()
		s.verify(l, v, false)
		if n < last {
			s.kill()
		}
	}
	s.conclude(l, v)
	b.add(f, fault, ends, l, v)
}

// run lives one life with a failing call and gives its end.
func (f failing) run(s *server, strace, fault string, n int, l *ledger, o load) string {
	s.t.Helper()
	trace := s.path("trace")
	s.prefix = f.strace(strace, s.data, fault, n, trace)
	before := l.refusedAnswers()
	err := s.begin()
	if err == nil {
		s.loadUntil(l, o, 25, 0, func() {})
	}
	alive := !s.ended()
	if alive {
		must(s.t, s.process.Process.Signal(syscall.SIGTERM))
		s.await()
	}
	text, readErr := os.ReadFile(trace)
	must(s.t, readErr)
	status := s.process.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case status.Signaled() && status.Signal() == syscall.SIGKILL && fault == "KILL":
		return killed
	case !strings.Contains(string(text), "(INJECTED)"):
		return f.expect(err == nil && alive && status.ExitStatus() == 0, notReached)
	case err != nil:
		return f.expect(status.ExitStatus() == 1 || status.ExitStatus() == 74, startRefused)
	case !alive:
		return f.expect(status.ExitStatus() == 74 && !f.mayNotEnd(fault), exitStorage)
	case f.name == "database sync":
		return wrong // what a failed sync leaves behind is not known
	case l.refusedAnswers() > before:
		return answered
	}
	return unnoticed
}

func (failing) expect(ok bool, end string) string {
	if ok {
		return end
	}
	return wrong
}

// mayNotEnd reports whether the service has to live on: a full disk is no
// reason to end.
func (f failing) mayNotEnd(fault string) bool {
	return fault == "ENOSPC" && (f.name == "database write" || f.name == "database growth" || strings.HasPrefix(f.name, "upload"))
}

// strace gives the command that makes the n-th call of each thread fail.
// (-D: the service is this process's child, strace is not in between.)
func (f failing) strace(strace, data, fault string, n int, trace string) []string {
	inject := fmt.Sprintf("inject=%s:error=%s:when=%d", f.calls, fault, n)
	if fault == "KILL" {
		inject = fmt.Sprintf("inject=%s:signal=KILL:when=%d", f.calls, n)
	}
	argv := []string{strace, "-D", "-f", "-qq", "-e", "signal=none", "-o", trace, "-e", "trace=" + f.calls, "-e", inject}
	for _, path := range f.aim {
		argv = append(argv, "-P", filepath.Join(data, path))
	}
	return argv
}

// refusedAnswers counts the answers without success so far.
func (l *ledger) refusedAnswers() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, count := range l.refusals {
		n += count
	}
	return n
}
