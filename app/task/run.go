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
	LockFD    int // the lock, taken and passed on by the starter; 0 means take it here
	Isolation Isolation
	NewGauge  NewProgressParser // nil means no progress parsers
	Worker    bool              // the directory belongs to a worker; see RunWorker
	Gauged    bool              // for a worker: its tasks need progress parsers
	Unsynced  bool              // for a worker: its starter shares its page cache and syncs its files
}

// ErrRefused means that the task in this directory is running or has run. Nothing in the
// directory was touched.
var ErrRefused = errors.New("this task was started before")

// ExitRefused is the exit code for ErrRefused. Batch systems treat codes in this range as
// a caller error.
const ExitRefused = 76

// ExitCode returns the exit code of `molrun task` for an error of Run: 0 means that there
// is an outcome of any kind.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrRefused):
		return ExitRefused
	}
	return 1
}

// Run runs the attempt in dir to its outcome. It is the entire life of a process: it
// changes the process's signals, umask and limits, and makes it the parent of all orphans
// below it.
//
// An error means that there is no outcome.
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
		// A cluster's file system might not support locks. There, run.json shows that the
		// task was started. Tasks on this machine inherit their lock.
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

// prepareProcess sets what programs inherit, and makes this process the parent of every
// orphan below it.
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
		return fmt.Errorf("disable core dumps: %w", err)
	}
	return nil
}

// closeFilesOnExec prevents programs from inheriting the inherited descriptors of this
// process: the lock, which would outlive it, and files of the service.
func closeFilesOnExec() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("list open files: %w", err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd) // harmless for the listing's own descriptor, which is already closed
		}
	}
	return nil
}
