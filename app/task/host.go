package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"molrun/app/task/process"
	"molrun/app/task/protocol"
)

// host is the process that runs tasks: what all of them share.
type host struct {
	ctx       context.Context // its end has the effect of SIGTERM
	self      process.ID
	isolation Isolation
	cannot    error    // why programs can't be isolated
	newGauge  NewGauge // nil: none
	pilot     bool     // it may run more than one task
	unsynced  bool     // others make durable what tasks leave

	leaving  bool // this process was asked to end
	priority priority
	shared   sharedSandbox // of a pilot's tasks

	children chan os.Signal   // a child ended
	ends     chan os.Signal   // this process is asked to end
	hangups  chan os.Signal   // ignored; programs get the default back
	looks    <-chan time.Time // it is time to look whether a task was stopped; nil: a signal says so
	onLook   func()           // looks at the other tasks
}

// newHost makes this process fit to run tasks. Programs die with the thread that
// started them, so the caller's goroutine keeps its thread until close.
func newHost(ctx context.Context, o Options) (*host, error) {
	runtime.LockOSThread()
	if err := prepareProcess(); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	h := &host{
		ctx: ctx, newGauge: o.NewGauge, pilot: o.Pilot, unsynced: o.Unsynced,
		children: make(chan os.Signal, 1),
		ends:     make(chan os.Signal, 1),
		hangups:  make(chan os.Signal, 1),
	}
	h.isolation, h.cannot = o.Isolation.resolve(ctx)
	signal.Notify(h.children, syscall.SIGCHLD)
	signal.Notify(h.ends, syscall.SIGTERM, syscall.SIGINT)
	signal.Notify(h.hangups, syscall.SIGHUP)
	var err error
	if h.self, err = process.IDOf(os.Getpid()); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *host) close() {
	signal.Stop(h.children)
	signal.Stop(h.ends)
	signal.Stop(h.hangups)
	runtime.UnlockOSThread()
}

// reapChildren collects all children that have ended, including adopted ones, and notifies of
// each. It reports whether there is no child at all.
func (h *host) reapChildren(notify func(pid int, status syscall.WaitStatus, usage syscall.Rusage)) (none bool) {
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, &usage)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // ECHILD
			return true
		case pid == 0:
			return false
		default:
			if h.shared.reaped(pid) {
				usage = syscall.Rusage{} // it is that of all steps that used the sandbox
			}
			notify(pid, status, usage)
		}
	}
}

// runTask runs the task in dir to its outcome. A directory is run at most once.
func (h *host) runTask(dir string) error {
	if Exists(dir, OutcomeFile) || Exists(dir, RunFile) {
		return fmt.Errorf("%w: it has %s or %s", ErrRefused, OutcomeFile, RunFile)
	}
	reserved, err := reserveOutcome(dir)
	if err != nil {
		return err
	}
	s := newShim(h, dir)
	if h.cannot != nil {
		s.decide(protocol.CauseCannotStart, sentence(h.cannot.Error()))
	}
	if err := s.announce(); err != nil {
		return errors.Join(err, os.Remove(reserved.path))
	}
	s.runSteps()
	s.syncOutput()
	return reserved.write(s.finish())
}

// cpuSeconds is what the children of this process that have ended have used, without steps in a shared
// sandbox.
func (h *host) cpuSeconds() float64 {
	return process.ChildrenSeconds() - h.shared.twice
}
