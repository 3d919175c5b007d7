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

// BootID returns the kernel's ID of the current boot, the value of Outcome.Unsynced.
func BootID() (string, error) { return process.BootID() }

// decide records why the task ended. The first cause counts: what a program does after it
// was asked to exit does not change it.
func (s *shim) decide(cause protocol.Cause, message string) {
	if s.outcome.Cause != "" {
		return
	}
	s.outcome.Cause, s.outcome.Message = cause, message
}

// warn records a program's warning that its result is doubtful.
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
	s.decide(protocol.CauseInterrupted, "The job was interrupted because the machine shut down; the program did not fail.")
}

// classifyEnd determines the outcome from the exit status of the step's program. After
// the last step the task is done, even if leftover processes still have to be killed,
// unless the results of the step remain to be checked.
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
	r.recordFailedStep()
}

// recordFailedStep records the step if it made the task fail.
func (r *runningStep) recordFailedStep() {
	if r.outcome.Cause != "" && r.outcome.Cause != protocol.CauseDone {
		r.outcome.Step = r.step.Name
	}
}

// checkForks decides that the program failed because it reached the process limit, if the
// kernel rejected a fork before checkUsage counted the processes.
func (r *runningStep) checkForks() {
	if r.cgroup != nil && r.cgroup.ForksRefused() > r.cgroupForks {
		r.decide(protocol.CauseLimit, fmt.Sprintf("The job tried to exceed the limit of %d processes and threads at once (runner.processes). "+
			"Make it start fewer, or ask an administrator to raise the limit.", r.isolation.Processes))
	}
}

// overMemory reports whether the kernel killed a process of the step because the job
// reached its memory limit.
func (r *runningStep) overMemory() bool {
	return r.cgroup != nil && r.cgroup.OOMKills() > r.cgroupKills
}

// checkMemory decides that the step ran out of memory if the kernel killed one of its
// processes. OOM kills elsewhere on the machine count only if the step was killed.
func (r *runningStep) checkMemory(killed bool) {
	switch {
	case r.overMemory():
		r.decide(protocol.CauseMemory, fmt.Sprintf("The job exceeded its memory limit of %s.", unit.Bytes(r.spec.MemoryBytes)))
	case killed && process.OOMKills() > r.oomKills:
		r.decide(protocol.CauseMemory, "The machine ran out of memory, so the kernel killed the program.")
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
		r.decide(protocol.CauseLimit, fmt.Sprintf("Step %q wrote a file larger than the limit of %s (runner.file_size). "+
			"Make it write less or split its files, or ask an administrator to raise the limit.", r.step.Name, unit.Bytes(r.isolation.FileBytes)))
	}
	r.decide(protocol.CauseSignal, fmt.Sprintf("Step %q was terminated by signal %s.", r.step.Name, r.outcome.Signal))
}

// finish completes the outcome once all processes have exited.
func (s *shim) finish() protocol.Outcome {
	largest := s.largest
	if s.isolation.Runtime != nil && largest <= runtimeMemory {
		largest = 0 // it could be that of the runtime
	}
	s.outcome.Protocol = Protocol
	s.outcome.StartedAt = milliseconds(s.begin)
	// Start plus elapsed time is immune to clock changes.
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
