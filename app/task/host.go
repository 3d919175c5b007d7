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

// host is the process that runs tasks: the state that they share.
type host struct {
	ctx          context.Context // canceling it has the effect of SIGTERM
	self         process.ID
	isolation    Isolation
	isolationErr error             // why programs can't be isolated
	newGauge     NewProgressParser // nil means no progress parsers
	worker       bool              // it can run more than one task
	unsynced     bool              // the output of tasks is synced elsewhere

	terminating bool // this process was asked to end
	priority    priority
	shared      sharedSandbox // sandbox shared by the tasks of a worker

	children    chan os.Signal   // a child exited
	termSignals chan os.Signal   // this process should exit
	hangups     chan os.Signal   // ignored; programs get the default action
	stopTicks   <-chan time.Time // time to check for stop requests; nil if a signal reports them
	checkOthers func()           // checks the other tasks
}

// newHost prepares this process to run tasks. Programs die with the thread that started
// them, so the caller's goroutine is locked to its thread until close.
func newHost(ctx context.Context, o Options) (*host, error) {
	runtime.LockOSThread()
	if err := prepareProcess(); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	h := &host{
		ctx: ctx, newGauge: o.NewGauge, worker: o.Worker, unsynced: o.Unsynced,
		children:    make(chan os.Signal, 1),
		termSignals: make(chan os.Signal, 1),
		hangups:     make(chan os.Signal, 1),
	}
	h.isolation, h.isolationErr = o.Isolation.resolve(ctx)
	signal.Notify(h.children, syscall.SIGCHLD)
	signal.Notify(h.termSignals, syscall.SIGTERM, syscall.SIGINT)
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
	signal.Stop(h.termSignals)
	signal.Stop(h.hangups)
	runtime.UnlockOSThread()
}

// reapChildren reaps all children that have exited, including adopted ones, and calls
// notify for each. It reports whether no children remain.
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
				usage = syscall.Rusage{} // includes every step that used the sandbox
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
	if h.isolationErr != nil {
		s.decide(protocol.CauseCannotStart, sentence(h.isolationErr.Error()))
	}
	if err := s.announce(); err != nil {
		return errors.Join(err, os.Remove(reserved.path))
	}
	s.runSteps()
	s.syncOutput()
	return reserved.write(s.finish())
}

// cpuSeconds returns the CPU time of this process's exited children, without steps in a
// shared sandbox.
func (h *host) cpuSeconds() float64 {
	return process.ChildrenSeconds() - h.shared.doubleCounted
}
