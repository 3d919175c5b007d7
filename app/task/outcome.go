package task

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"molrun/app/base/unit"
	"molrun/app/task/process"
	"molrun/app/task/protocol"
)

// BootID returns the kernel's ID of the current boot, as Outcome.Unsynced names it.
func BootID() (string, error) { return process.BootID() }

// decide records why the task ended. The first cause counts: what a program does
// after it was asked to end does not change it.
func (s *shim) decide(cause protocol.Cause, message string) {
	if s.outcome.Cause != "" {
		return
	}
	s.outcome.Cause, s.outcome.Message = cause, message
}

// warn notes what a program says makes its result doubtful.
func (s *shim) warn(text string) {
	s.outcome.Warnings = protocol.AddWarning(s.outcome.Warnings, text)
}

// interrupt handles SIGTERM: the task was asked to stop, or the machine is
// shutting down.
func (s *shim) interrupt() {
	if StopRequested(s.dir) {
		s.decide(protocol.CauseStopped, "The job was stopped.")
		return
	}
	s.decide(protocol.CauseInterrupted, "The machine ended the job, which did not fail by itself.")
}

// classifyEnd decides by how the step's program ended. After the last step the task is
// done, even if leftovers still have to be killed, unless what the step has left is
// still to be checked.
func (r *runningStep) classifyEnd(status syscall.WaitStatus) {
	switch {
	case status.Signaled():
		r.classifySignal(status.Signal())
	case status.ExitStatus() != 0 && !slices.Contains(r.step.OK, status.ExitStatus()):
		r.outcome.ExitCode = status.ExitStatus()
		r.checkForks()
		r.checkMemory(status.ExitStatus() == protocol.KilledStatus)
		r.decide(protocol.CauseExit, fmt.Sprintf("Step %q ended with exit code %d.", r.step.Name, status.ExitStatus()))
	case r.last && !checked(r.step):
		r.decide(protocol.CauseDone, "")
	}
	r.blame()
}

// blame notes the step if it ended the task badly.
func (r *runningStep) blame() {
	if r.outcome.Cause != "" && r.outcome.Cause != protocol.CauseDone {
		r.outcome.Step = r.step.Name
	}
}

// checkForks decides that the program failed for want of processes, if the kernel refused it
// one before checkUsage saw how many there were.
func (r *runningStep) checkForks() {
	if r.cgroup != nil && r.cgroup.ForksRefused() > r.cgroupForks {
		r.decide(protocol.CauseLimit, fmt.Sprintf("The job wanted more processes and threads at once, more than the %d that it may (runner.processes). "+
			"Have it start fewer, or ask an administrator for more.", r.isolation.Processes))
	}
}

// overMemory reports whether the kernel has killed a process of the step because the job
// reached its memory limit.
func (r *runningStep) overMemory() bool {
	return r.cgroup != nil && r.cgroup.OOMKills() > r.cgroupKills
}

// checkMemory decides that the step failed for want of memory, if the kernel has killed a
// process of it. Of kills on the whole machine it counts those of a step that was killed.
func (r *runningStep) checkMemory(killed bool) {
	switch {
	case r.overMemory():
		r.decide(protocol.CauseMemory, fmt.Sprintf("The job used more than the %s of memory that it may.", unit.Bytes(r.spec.MemoryBytes)))
	case killed && process.OOMKills() > r.oomKills:
		r.decide(protocol.CauseMemory, "The machine had no memory left, so the kernel killed the program.")
	}
}

func (r *runningStep) classifySignal(sig syscall.Signal) {
	r.outcome.Signal = signalName(sig)
	if sig != syscall.SIGKILL {
		r.checkForks()
	}
	switch {
	case sig == syscall.SIGKILL:
		r.checkMemory(true)
	case sig == syscall.SIGXFSZ && r.isolation.FileBytes > 0:
		r.decide(protocol.CauseLimit, fmt.Sprintf("Step %q wrote a file larger than the %s that one may have (runner.file_size). "+
			"Have it write less or several files, or ask an administrator for more.", r.step.Name, unit.Bytes(r.isolation.FileBytes)))
	}
	r.decide(protocol.CauseSignal, fmt.Sprintf("Step %q was ended by the signal %s.", r.step.Name, r.outcome.Signal))
}

// finish completes the outcome once all processes have exited.
func (s *shim) finish() protocol.Outcome {
	largest := s.largest
	if s.isolation.Runtime != nil && largest <= runtimeMemory {
		largest = 0 // it may be the runtime's
	}
	s.outcome.Protocol = Protocol
	s.outcome.StartedAt = milliseconds(s.begin)
	// Begin plus elapsed time is immune to changes of the clock.
	s.outcome.EndedAt = milliseconds(s.begin.Add(time.Since(s.begin)))
	s.outcome.CPUSeconds = max(0, s.cpuSeconds()-s.used) + s.sharedCPUSeconds
	s.outcome.MaxRSSBytes = max(s.memory.peak, largest)
	s.outcome.Isolation = s.isolation.Kind()
	if s.unsynced {
		s.outcome.Unsynced = s.self.BootID
	}
	if s.spec != nil {
		s.outcome.ProgramVersion = s.spec.ProgramVersion
	}
	return s.outcome
}
