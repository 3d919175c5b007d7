package task

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"molrun/app/task/process"
	"molrun/app/task/protocol"
	"molrun/app/task/sandbox"
)

// runningStep is a step while it runs: its program, and every process that the program
// starts.
type runningStep struct {
	*shim
	step          protocol.Step
	last          bool             // no step follows
	env           []string         // of the program
	printed       *tail            // the end of its output; nil if not needed
	advance       advance          // of the step, in the task
	gauge         ProgressParser   // progress parser of its output; nil means none
	watched       *watchedFile     // nil means none
	leader        int              // PID of the program, of bwrap or of a runtime
	sandbox       *sandbox.Sandbox // nil means that the program sees the whole machine
	ended         bool             // the program has exited
	sandboxExited bool             // bwrap or the runtime has exited

	leftoversAsked bool             // leftover processes were asked to exit
	kill           <-chan time.Time // fires when the grace period is over, then repeatedly
	killBegin      time.Time        // when it first fired
	killPause      time.Duration    // until kill fires again

	memoryCheck *time.Timer
	diskCheck   *time.Timer
	processes   int64 // number at the last check
	oomKills    int64 // on the machine, before the step
	cgroupKills int64 // in the task's cgroup, before the step
	cgroupForks int64 // forks denied in the task's cgroup before the step
}

// runStep runs one step until all its processes have exited.
func (s *shim) runStep(step protocol.Step, advance advance, last bool) {
	r := &runningStep{shim: s, step: step, last: last, advance: advance, oomKills: process.OOMKills(), env: s.environment(step)}
	r.advance.stepStarted()
	r.gauge, r.watched = r.gauges()
	if len(step.FailsIf) > 0 {
		r.printed = &tail{most: searchedOutput}
	}
	if s.cgroup != nil {
		r.cgroupKills, r.cgroupForks = s.cgroup.OOMKills(), s.cgroup.ForksRefused()
	}
	output, err := r.startProgram()
	if err != nil {
		s.outcome.Step = step.Name
		s.decide(protocol.CauseCannotStart, sentence(err.Error()))
		return
	}
	s.memory.pause = 0
	r.memoryCheck = time.NewTimer(firstPause)
	defer r.memoryCheck.Stop()
	r.diskCheck = time.NewTimer(firstPause)
	defer r.diskCheck.Stop()
	r.wait()
	r.priority.reset()
	err = output.finish()
	if r.sandbox != nil {
		err = errors.Join(err, r.sandbox.Close())
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "clean up after step %s: %v\n", step.Name, err)
	}
	r.shared.busy = false
	r.conclude()
}

// wait returns once this process has no children left, and hence no descendants.
func (r *runningStep) wait() {
	done := r.ctx.Done()
	var sandboxEnded <-chan syscall.WaitStatus // the program has exited, perhaps before the sandbox
	var sandboxOver <-chan sandbox.Usage
	if r.sandbox != nil {
		sandboxEnded, sandboxOver = r.sandbox.Ended(), r.sandbox.Over()
	}
	for !r.reap() {
		if r.ended && !r.leftoversAsked {
			r.endLeftovers()
		}
		select {
		case <-r.children:
		case status := <-sandboxEnded:
			r.recordEnd(status)
		case usage := <-sandboxOver:
			r.endShared(usage)
		case <-r.termSignals:
			r.terminating = true
			r.interrupt()
			r.terminate()
		case <-done:
			done = nil
			r.interrupt()
			r.terminate()
		case <-r.timeout:
			r.timedOut()
			r.terminate()
		case <-r.kill:
			r.killAll()
		case <-r.memoryCheck.C:
			r.checkUsage()
		case <-r.diskCheck.C:
			r.checkDisk()
		case <-r.stopTicks:
			if r.pollStop() {
				r.interrupt()
				r.terminate()
			}
		}
	}
}

// timedOut records that the time limit was reached.
func (s *shim) timedOut() {
	s.decide(protocol.CauseTimeout, fmt.Sprintf("The job exceeded its time limit of %s.",
		time.Duration(s.spec.MaxRuntimeSeconds)*time.Second))
}

// reap reaps all children that have exited, including adopted ones, and reports whether
// the only remaining children are a shared sandbox or hold the namespaces of a runtime.
func (r *runningStep) reap() (none bool) {
	none = r.reapChildren(func(pid int, status syscall.WaitStatus, usage syscall.Rusage) {
		r.largest = max(r.largest, process.Largest(usage))
		switch {
		case pid == r.leader && r.sandbox != nil:
			r.sandboxExited = true
			r.recordEnd(r.sandbox.Status(status))
		case pid == r.leader:
			r.recordEnd(status)
		}
	})
	return none || r.sandboxExited && (r.shared.only() || r.isolation.Runtime != nil && process.OnlyHolders())
}

// endHolders kills the processes that hold the namespaces of a runtime, if it started
// them for this task. The runtime restarts them for the next.
func endHolders() {
	for end := time.Now().Add(runtimeExitTimeout); time.Now().Before(end); time.Sleep(firstKillPause) {
		process.SignalDescendants(syscall.SIGKILL)
		if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); errors.Is(err, syscall.ECHILD) {
			return
		}
	}
}

// recordEnd records how the program ended, once.
func (r *runningStep) recordEnd(status syscall.WaitStatus) {
	if r.ended {
		return
	}
	r.ended = true
	if isTermination(status) && r.outcome.Cause == "" {
		r.awaitOwnSignal()
	}
	r.classifyEnd(status)
}

// ownSignalDelay is how much later than its program the task can receive a signal that is
// meant for both.
const ownSignalDelay = time.Second

// awaitOwnSignal waits for the signal that might have ended the program to reach this
// process too. Slurm signals the processes of a job one by one, the last one first, as
// does an administrator's pkill.
func (r *runningStep) awaitOwnSignal() {
	select {
	case <-r.termSignals:
		r.terminating = true
		r.interrupt()
	case <-r.ctx.Done():
		r.interrupt()
	case <-time.After(ownSignalDelay):
	}
}

// isTermination reports whether a program was ended by a termination signal, or has the exit
// status by which shells report that.
func isTermination(status syscall.WaitStatus) bool {
	sig := status.Signal() // -1 means no signal
	if code := status.ExitStatus(); code > 128 {
		sig = syscall.Signal(code - 128)
	}
	return sig == syscall.SIGTERM || sig == syscall.SIGINT
}

// terminate asks the program to exit, and has it killed after the grace period. Repeating
// it has no effect.
func (r *runningStep) terminate() {
	if r.kill != nil {
		return
	}
	r.priority.raise()
	r.kill = time.After(r.spec.Grace())
	if r.sandbox != nil {
		r.sandbox.SignalProgram(syscall.SIGTERM)
		return
	}
	// While kill is nil the leader is not reaped, so the group still belongs to it.
	syscall.Kill(-r.leader, syscall.SIGTERM)
	syscall.Kill(-r.leader, syscall.SIGCONT)
}

// endLeftovers asks the remaining processes that the program started, in the background
// or in their own sessions, to exit.
func (r *runningStep) endLeftovers() {
	r.leftoversAsked = true
	if r.kill == nil {
		r.kill = time.After(r.spec.Grace())
	}
	if r.sandbox != nil {
		r.sandbox.SignalAll(syscall.SIGTERM)
		return
	}
	process.SignalDescendants(syscall.SIGTERM)
	process.SignalDescendants(syscall.SIGCONT)
}

// The range of pauses between two rounds of killAll.
const (
	firstKillPause = 10 * time.Millisecond
	mostKillPause  = time.Second
)

// runtimeExitTimeout is how long a container runtime has to exit once everything inside has
// been killed. In this time it removes the container.
const runtimeExitTimeout = 5 * time.Second

// initKillTimeout is how long the first process in a sandbox has to kill all others. If it
// were killed with them, their usage would be unknown, and other tasks would lose their
// shared sandbox.
const initKillTimeout = time.Second

// killAll kills every process of the step. It is repeated until none remains, because it
// can miss one that is just being forked. It slows down for processes that wait for a
// disk, which can't be killed.
func (r *runningStep) killAll() {
	r.priority.raise()
	if r.killBegin.IsZero() {
		r.killBegin = time.Now()
	}
	r.killPause = min(max(firstKillPause, 2*r.killPause), mostKillPause)
	r.kill = time.After(r.killPause)
	if r.sandbox != nil && r.isolation.Runtime == nil && time.Since(r.killBegin) < initKillTimeout {
		r.sandbox.SignalAll(syscall.SIGKILL)
		return
	}
	switch {
	case r.isolation.Runtime != nil && time.Since(r.killBegin) < runtimeExitTimeout:
		r.sandbox.Kill()
	case r.cgroup != nil && r.cgroup.Kill() == nil:
	case r.sandbox != nil:
		r.sandbox.Kill()
	default:
		process.FreezeDescendants()
	}
	if r.isolation.Runtime == nil || time.Since(r.killBegin) >= runtimeExitTimeout {
		process.SignalDescendants(syscall.SIGKILL, r.shared.idle()...)
	}
}
