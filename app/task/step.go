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

// runningStep is the life of one step: its program, and every process that the
// program starts.
type runningStep struct {
	*shim
	step    protocol.Step
	last    bool             // no step follows
	env     []string         // of the program
	printed *tail            // the end of its output; nil: not needed
	advance advance          // of the step, in the task
	gauge   Gauge            // progress parser of its output; nil: none
	watched *watchedFile     // nil: none
	leader  int              // PID of the program, of bwrap or of a runtime
	sandbox *sandbox.Sandbox // nil: the program sees the whole machine
	ended   bool             // the program has
	left    bool             // so has bwrap or the runtime

	leftoversAsked bool             // what the program left behind was asked to end
	kill           <-chan time.Time // fires when the grace is over, then repeatedly
	killBegin      time.Time        // when it first fired
	killPause      time.Duration    // until kill fires again

	memoryCheck *time.Timer
	diskCheck   *time.Timer
	processes   int64 // at the last check
	oomKills    int64 // of the machine, before the step
	cgroupKills int64 // of the task's cgroup, before the step
	cgroupForks int64 // that the kernel refused the task's cgroup before the step
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
	r.priority.calm()
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

// wait returns once this process has no child: then no descendant is left.
func (r *runningStep) wait() {
	done := r.ctx.Done()
	var sandboxEnded <-chan syscall.WaitStatus // the program ended, perhaps before the sandbox
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
		case <-r.ends:
			r.leaving = true
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
		case <-r.looks:
			if r.lookForStop() {
				r.interrupt()
				r.terminate()
			}
		}
	}
}

// timedOut records that the time is up.
func (s *shim) timedOut() {
	s.decide(protocol.CauseTimeout, fmt.Sprintf("The job ran longer than its limit of %s.",
		time.Duration(s.spec.MaxRuntimeSeconds)*time.Second))
}

// reap collects all children that have ended, including adopted ones, and reports whether
// the only children left hold the namespaces of a runtime, and a shared sandbox.
func (r *runningStep) reap() (none bool) {
	none = r.reapChildren(func(pid int, status syscall.WaitStatus, usage syscall.Rusage) {
		r.largest = max(r.largest, process.Largest(usage))
		switch {
		case pid == r.leader && r.sandbox != nil:
			r.left = true
			r.recordEnd(r.sandbox.Status(status))
		case pid == r.leader:
			r.recordEnd(status)
		}
	})
	return none || r.left && (r.shared.only() || r.isolation.Runtime != nil && process.OnlyHolders())
}

// endHolders ends the processes that hold the namespaces of a runtime, if it has started them
// for this task. It restarts them for the next.
func endHolders() {
	for end := time.Now().Add(runtimePatience); time.Now().Before(end); time.Sleep(firstKillPause) {
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
	if asksToEnd(status) && r.outcome.Cause == "" {
		r.awaitOwnSignal()
	}
	r.classifyEnd(status)
}

// ownSignalDelay is how much later than its program the task may get a signal that
// is meant for both.
const ownSignalDelay = time.Second

// awaitOwnSignal waits for the signal that may have ended the program to reach this
// process too. Slurm signals the processes of a job one by one, the last one first,
// as does an administrator's pkill.
func (r *runningStep) awaitOwnSignal() {
	select {
	case <-r.ends:
		r.leaving = true
		r.interrupt()
	case <-r.ctx.Done():
		r.interrupt()
	case <-time.After(ownSignalDelay):
	}
}

// asksToEnd reports whether a program ended by a signal that asks to end, or says
// what shells say about such a program.
func asksToEnd(status syscall.WaitStatus) bool {
	sig := status.Signal() // -1: by none
	if code := status.ExitStatus(); code > 128 {
		sig = syscall.Signal(code - 128)
	}
	return sig == syscall.SIGTERM || sig == syscall.SIGINT
}

// terminate asks the program to end, and has it killed when the grace is over.
// Repeating it changes nothing.
func (r *runningStep) terminate() {
	if r.kill != nil {
		return
	}
	r.priority.hurry()
	r.kill = time.After(r.spec.Grace())
	if r.sandbox != nil {
		r.sandbox.SignalProgram(syscall.SIGTERM)
		return
	}
	// While kill is nil the leader is not reaped, so the group is still its own.
	syscall.Kill(-r.leader, syscall.SIGTERM)
	syscall.Kill(-r.leader, syscall.SIGCONT)
}

// endLeftovers asks processes that the program left behind to end, in the
// background or in sessions of their own.
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

// The pauses between two rounds of killAll.
const (
	firstKillPause = 10 * time.Millisecond
	mostKillPause  = time.Second
)

// runtimePatience is how long the runtime of a container may take to end once everything
// inside has been killed. It removes the container in the meantime.
const runtimePatience = 5 * time.Second

// firstPatience is how long the first process in a sandbox may take to kill all others. If it was killed with
// them, their usage would be unknown, and other tasks would lose the sandbox that they share.
const firstPatience = time.Second

// killAll kills every process of the step. It is repeated until none is left,
// because it may miss one that is just being forked. It slows down for
// processes that wait for a disk, which nothing can kill.
func (r *runningStep) killAll() {
	r.priority.hurry()
	if r.killBegin.IsZero() {
		r.killBegin = time.Now()
	}
	r.killPause = min(max(firstKillPause, 2*r.killPause), mostKillPause)
	r.kill = time.After(r.killPause)
	if r.sandbox != nil && r.isolation.Runtime == nil && time.Since(r.killBegin) < firstPatience {
		r.sandbox.SignalAll(syscall.SIGKILL)
		return
	}
	switch {
	case r.isolation.Runtime != nil && time.Since(r.killBegin) < runtimePatience:
		r.sandbox.Kill()
	case r.cgroup != nil && r.cgroup.Kill() == nil:
	case r.sandbox != nil:
		r.sandbox.Kill()
	default:
		process.FreezeDescendants()
	}
	if r.isolation.Runtime == nil || time.Since(r.killBegin) >= runtimePatience {
		process.SignalDescendants(syscall.SIGKILL, r.shared.idle()...)
	}
}
