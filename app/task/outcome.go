package task

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"molrun/app/protocol"
)

// settle decides how the task ended. The first decision stands: what a program
// does once it was asked to end does not count.
func (s *shim) settle(cause protocol.Cause, message string) {
	if s.out.Cause != "" {
		return
	}
	s.out.Cause, s.out.Message = cause, message
}

// interrupt is the answer to SIGTERM: as asked, or because the machine goes
// down.
func (s *shim) interrupt() {
	if StopAsked(s.dir) {
		s.settle(protocol.CauseStopped, "The job was stopped.")
		return
	}
	s.settle(protocol.CauseInterrupted, "The machine ended the job, which did not fail by itself.")
}

// judge decides by how the leader of a step ended. After the last step the
// task is done, whatever happens while leftovers are cleared away.
func (w *watch) judge(status syscall.WaitStatus) {
	switch {
	case status.Signaled():
		w.judgeSignal(status.Signal())
	case status.ExitStatus() != 0:
		w.out.ExitCode = status.ExitStatus()
		w.settle(protocol.CauseExit, fmt.Sprintf("Step %q ended with exit code %d.", w.step.Name, status.ExitStatus()))
	case w.last:
		w.settle(protocol.CauseDone, "")
	}
	if w.out.Cause != "" && w.out.Cause != protocol.CauseDone {
		w.out.Step = w.step.Name
	}
}

func (w *watch) judgeSignal(sig syscall.Signal) {
	w.out.Signal = signalName(sig)
	switch {
	case sig == syscall.SIGKILL && w.group != nil && w.group.count("memory.events", "oom_kill") > w.groupKills:
		w.settle(protocol.CauseMemory, fmt.Sprintf("The job used more than the %s of memory that it may.", binary(w.spec.MemoryBytes)))
		return
	case sig == syscall.SIGXFSZ && w.isolation.FileBytes > 0:
		w.settle(protocol.CauseLimit, fmt.Sprintf("Step %q wrote a file larger than the %s that one may have (runner.file_size). "+
			"Have it write less or several files, or ask an administrator for more.", w.step.Name, binary(w.isolation.FileBytes)))
		return
	case sig == syscall.SIGKILL && kernelKills() > w.oomKills:
		w.settle(protocol.CauseMemory, "The machine had no memory left, so the kernel killed the program.")
		return
	}
	w.settle(protocol.CauseSignal, fmt.Sprintf("Step %q was ended by the signal %s.", w.step.Name, w.out.Signal))
}

// outcome sums up once no process is left.
func (s *shim) outcome() protocol.Outcome {
	cpu, largest := usage()
	s.out.Protocol = Protocol
	s.out.StartedAt = moment(s.begin)
	s.out.EndedAt = moment(s.begin.Add(time.Since(s.begin)))
	s.out.CPUSeconds = cpu
	s.out.MaxRSSBytes = max(s.memory.peak, largest)
	s.out.Isolation = s.isolation.Kind()
	return s.out
}

// reserve is room for outcome.json, taken at the start: a program that filled
// the disk shall not make its own end unknown.
type reserve struct {
	dir, path string
}

const (
	reserveBytes    = 4 << 10
	outcomeAttempts = 10
	outcomePause    = 500 * time.Millisecond
)

func reserveOutcome(dir string) (*reserve, error) {
	f, err := os.CreateTemp(dir, "."+OutcomeFile+".*")
	if err != nil {
		return nil, fmt.Errorf("reserve room for %s: %w", OutcomeFile, err)
	}
	err = syscall.Fallocate(int(f.Fd()), 0, 0, reserveBytes)
	if errors.Is(err, syscall.EOPNOTSUPP) {
		err = nil // a file system that can't promise room
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("reserve room for %s: %w", OutcomeFile, errors.Join(err, os.Remove(f.Name())))
	}
	return &reserve{dir, f.Name()}, nil
}

// write makes the outcome appear, the last act of the task. Where that fails
// it is tried again for some seconds: nothing else can still be done.
func (r *reserve) write(o protocol.Outcome) error {
	data, err := encode(o)
	if err != nil {
		return err
	}
	for range outcomeAttempts {
		if err = r.fill(data); err == nil {
			err = install(r.path, r.dir, OutcomeFile)
		}
		if err == nil || Exists(r.dir, OutcomeFile) {
			return nil
		}
		time.Sleep(outcomePause)
	}
	return fmt.Errorf("write %s: %w", OutcomeFile, err)
}

func (r *reserve) fill(data []byte) error {
	f, err := os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Truncate(int64(len(data)))
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// sentence makes one of an error's text.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}

// binary writes a number of bytes for people.
func binary(bytes int64) string {
	const units = "KMGTPE"
	if bytes < 1<<10 {
		return fmt.Sprintf("%d B", bytes)
	}
	value, unit := float64(bytes)/(1<<10), 0
	for value >= 1<<10 {
		value, unit = value/(1<<10), unit+1
	}
	return fmt.Sprintf("%.1f %ciB", value, units[unit])
}

// signalNames are the names of kill -l, by number.
var signalNames = [...]string{
	syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGQUIT: "SIGQUIT",
	syscall.SIGILL: "SIGILL", syscall.SIGTRAP: "SIGTRAP", syscall.SIGABRT: "SIGABRT",
	syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE", syscall.SIGKILL: "SIGKILL",
	syscall.SIGUSR1: "SIGUSR1", syscall.SIGSEGV: "SIGSEGV", syscall.SIGUSR2: "SIGUSR2",
	syscall.SIGPIPE: "SIGPIPE", syscall.SIGALRM: "SIGALRM", syscall.SIGTERM: "SIGTERM",
	syscall.SIGSTKFLT: "SIGSTKFLT", syscall.SIGCHLD: "SIGCHLD", syscall.SIGCONT: "SIGCONT",
	syscall.SIGSTOP: "SIGSTOP", syscall.SIGTSTP: "SIGTSTP", syscall.SIGTTIN: "SIGTTIN",
	syscall.SIGTTOU: "SIGTTOU", syscall.SIGURG: "SIGURG", syscall.SIGXCPU: "SIGXCPU",
	syscall.SIGXFSZ: "SIGXFSZ", syscall.SIGVTALRM: "SIGVTALRM", syscall.SIGPROF: "SIGPROF",
	syscall.SIGWINCH: "SIGWINCH", syscall.SIGIO: "SIGIO", syscall.SIGPWR: "SIGPWR",
	syscall.SIGSYS: "SIGSYS",
}

func signalName(s syscall.Signal) string {
	if int(s) < len(signalNames) && signalNames[s] != "" {
		return signalNames[s]
	}
	return fmt.Sprintf("signal %d", int(s))
}
