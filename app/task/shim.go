package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"molrun/app/protocol"
)

// Options are what the command line of `molrun task` says.
type Options struct {
	LockFD    int // the lock, taken and handed down by whoever starts the task; 0: take it here
	Isolation Isolation
}

// ErrRefused says that the directory has been run, or is: nothing in it was
// touched.
var ErrRefused = errors.New("this task was started before")

// ExitRefused is the exit code for ErrRefused, of the kind that batch systems
// take for a mistake of the caller.
const ExitRefused = 76

// ExitCode gives how `molrun task` ends for what Run returned: 0 says that
// there is an outcome, whatever it is.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrRefused):
		return ExitRefused
	}
	return 1
}

// Run runs the attempt in dir to its outcome. It is the whole life of a process
// of its own and changes that process: its signals, umask, limits, and that
// all orphans below it become its children.
//
// An error says that there is no outcome.
func Run(ctx context.Context, dir string, o Options) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := takeLock(dir, o.LockFD); err != nil {
		return err
	}
	if Exists(dir, OutcomeFile) || Exists(dir, RunFile) {
		return fmt.Errorf("%w: it has %s or %s", ErrRefused, OutcomeFile, RunFile)
	}
	// Programs die with the thread that started them: it has to live on.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := prepareProcess(); err != nil {
		return err
	}
	reserve, err := reserveOutcome(dir)
	if err != nil {
		return err
	}
	keepTime()
	isolation, cannot := o.Isolation.found(ctx)
	s := newShim(ctx, dir)
	s.isolation = isolation
	defer s.close()
	if cannot != nil {
		s.settle(protocol.CauseCannotStart, sentence(cannot.Error()))
	}
	if err := s.announce(); err != nil {
		return err
	}
	s.run()
	s.keepOutput()
	return reserve.write(s.outcome())
}

func takeLock(dir string, fd int) error {
	if fd > 0 {
		return refusal(inheritLock(fd, dir))
	}
	err := keepLock(dir)
	if errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.EOPNOTSUPP) {
		// A cluster's file system may have no locks; run.json still shows that
		// the task was started. Tasks of this machine inherit theirs.
		return nil
	}
	return refusal(err)
}

func refusal(err error) error {
	if errors.Is(err, ErrLocked) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

// prepareProcess sets what programs inherit, and makes this process the parent
// of every orphan below it.
func prepareProcess() error {
	const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER of prctl(2)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		return fmt.Errorf("become the parent of orphans: %w", errno)
	}
	if err := keepFiles(); err != nil {
		return err
	}
	syscall.Umask(0o077)
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return fmt.Errorf("forbid core dumps: %w", err)
	}
	return nil
}

// keepTime gives this thread, which watches programs, the processor when it asks
// for it, however many of them run: it could not end what multiplies while it
// waits for its turn. Programs don't inherit that. Only root may; others have a
// limit on processes that the kernel holds.
func keepTime() {
	const roundRobin, resetOnFork = 2, 0x40000000 // of sched_setscheduler(2)
	lowest := int32(1)
	syscall.RawSyscall(syscall.SYS_SCHED_SETSCHEDULER, 0, roundRobin|resetOnFork, uintptr(unsafe.Pointer(&lowest)))
}

// keepFiles keeps programs from inheriting what this process has inherited:
// the lock, which would outlive it, and what the service's starter left open.
func keepFiles() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("list open files: %w", err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd) // the listing's own is closed by now: no harm
		}
	}
	return nil
}

// shim is the process between the service and the program. One goroutine
// starts, watches, ends and reaps programs, so nobody else can take a child's
// end away from it; a second one per step reads output.
type shim struct {
	dir, work string
	isolation Isolation
	group     *group // of all programs; nil: none
	spec      *Spec
	env       []string
	log       *logFile
	progress  progress
	memory    memory

	ctx      context.Context // ends like SIGTERM
	children chan os.Signal  // a child ended
	ends     chan os.Signal  // this process is to end
	hangups  chan os.Signal  // ignored; programs get the default back
	wall     <-chan time.Time

	begin time.Time
	out   protocol.Outcome // Cause is empty while nothing decided the end
}

func newShim(ctx context.Context, dir string) *shim {
	s := &shim{
		dir: dir, work: filepath.Join(dir, WorkDir), ctx: ctx, begin: time.Now(),
		progress: progress{dir: dir},
		children: make(chan os.Signal, 1),
		ends:     make(chan os.Signal, 1),
		hangups:  make(chan os.Signal, 1),
	}
	signal.Notify(s.children, syscall.SIGCHLD)
	signal.Notify(s.ends, syscall.SIGTERM, syscall.SIGINT)
	signal.Notify(s.hangups, syscall.SIGHUP)
	return s
}

func (s *shim) close() {
	signal.Stop(s.children)
	signal.Stop(s.ends)
	signal.Stop(s.hangups)
}

// announce writes run.json. From here on a signal finds this process; who
// wanted it to stop before has left the file stop.
func (s *shim) announce() error {
	self, err := FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	token := ""
	spec, err := Read(s.dir)
	if err != nil {
		// It would fail again however often it is tried.
		s.settle(protocol.CauseCannotStart, err.Error())
	} else {
		s.spec, token = spec, spec.Token
	}
	return writeForNow(s.dir, RunFile, Started{
		Protocol: Protocol, Process: self, Token: token, Isolation: s.isolation.Kind(), StartedAt: moment(s.begin),
	})
}

// run runs the steps until one fails or the end is decided otherwise.
func (s *shim) run() {
	if s.out.Cause != "" {
		return
	}
	if err := s.prepare(); err != nil {
		s.settle(protocol.CauseCannotStart, sentence(err.Error()))
		return
	}
	if StopAsked(s.dir) {
		s.interrupt()
	}
	for i, step := range s.spec.Steps {
		if s.out.Cause != "" {
			break
		}
		if step.Name == "" {
			step.Name = fmt.Sprint(i + 1)
		}
		s.runStep(step, i == len(s.spec.Steps)-1)
	}
	s.progress.finish()
	if s.group != nil {
		if err := s.group.remove(); err != nil {
			fmt.Fprintf(os.Stderr, "remove the cgroup: %v\n", err)
		}
	}
	if err := s.log.Close(); err != nil {
		fmt.Fprintf(os.Stderr, "close the log: %v\n", err)
	}
}

// prepare opens what the steps share and starts the clock.
func (s *shim) prepare() (err error) {
	if err := os.MkdirAll(filepath.Join(s.work, TempDir), 0o700); err != nil {
		return err
	}
	s.env = s.spec.environment(s.work)
	s.memory.limit = s.spec.MemoryBytes
	if limit := s.spec.MaxRuntimeSeconds; limit > 0 {
		s.wall = time.After(time.Until(s.begin.Add(time.Duration(limit) * time.Second)))
	}
	s.log, err = openLog(s.dir, s.spec.logBytes())
	return err
}

// moment is how times are written; the clock's jumps are left out by taking
// ends as begins plus what really passed.
func moment(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
