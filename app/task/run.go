package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Options are the flags of `molrun task`.
type Options struct {
	LockFD    int // the lock, which the starter took and passed on; 0: take it here
	Isolation Isolation
	NewGauge  NewGauge // nil: nothing is searched for progress
	Pilot     bool     // the directory is that of a pilot: see RunPilot
	Gauged    bool     // of a pilot: its tasks need gauges
	Unsynced  bool     // of a pilot: who starts it shares its memory of files, and makes them durable
}

// ErrRefused says that the task of this directory runs, or has run. Nothing in
// the directory was touched.
var ErrRefused = errors.New("this task was started before")

// ExitRefused is the exit code for ErrRefused. Batch systems take codes of this
// range for a mistake of the caller.
const ExitRefused = 76

// ExitCode returns the exit code of `molrun task` for what Run returned: 0 says
// that there is an outcome of any kind.
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
// of its own: it changes the process's signals, umask and limits, and makes it
// the parent of all orphans below it.
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
	h, err := newHost(ctx, o)
	if err != nil {
		return err
	}
	defer h.close()
	return h.runTask(dir)
}

func takeLock(dir string, fd int) error {
	if fd > 0 {
		return refusal(inheritLock(fd, dir))
	}
	err := keepLock(dir)
	if errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.EOPNOTSUPP) {
		// A cluster's file system may not support locks. There, run.json shows that
		// the task was started. Tasks of this machine inherit their lock.
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
	if err := closeFilesOnExec(); err != nil {
		return err
	}
	syscall.Umask(0o077)
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return fmt.Errorf("forbid core dumps: %w", err)
	}
	return nil
}

// closeFilesOnExec keeps programs from inheriting what this process has
// inherited: the lock, which would outlive it, and files of the service.
func closeFilesOnExec() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("list open files: %w", err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd) // harmless for the listing's own, which is closed by now
		}
	}
	return nil
}
