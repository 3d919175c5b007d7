package task

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrLocked says that another process runs the task.
var ErrLocked = errors.New("another process runs this task")

// lockPatience covers those who look at a lock (Locked) while it is taken.
const lockPatience = time.Second

// Lock takes the lock of an attempt, which says "this task lives" until the
// file is closed by everyone who inherited it. It fails with ErrLocked.
func Lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the task: %w", err)
	}
	if err := flock(int(f.Fd()), syscall.LOCK_EX, lockPatience); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Locked reports whether a process runs the task. One whose lock was removed,
// or replaced by what is no file, can't be told from a dead one.
func Locked(dir string) (bool, error) {
	f, err := open(dir, LockFile)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrUnreadable) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the task's lock: %w", err)
	}
	err = errors.Join(flock(int(f.Fd()), syscall.LOCK_SH, 0), f.Close())
	if errors.Is(err, ErrLocked) {
		return true, nil
	}
	return false, err
}

// inheritLock takes over the lock that the starter of this process holds, so
// that there is no moment at which nobody does.
func inheritLock(fd int, dir string) error {
	var given, there syscall.Stat_t
	if err := syscall.Fstat(fd, &given); err != nil {
		return fmt.Errorf("inherit the lock: descriptor %d: %w", fd, err)
	}
	if err := syscall.Stat(filepath.Join(dir, LockFile), &there); err != nil {
		return fmt.Errorf("inherit the lock: %s: %w", LockFile, err)
	}
	if given.Dev != there.Dev || given.Ino != there.Ino {
		return fmt.Errorf("inherit the lock: descriptor %d is not %s of this task", fd, LockFile)
	}
	return flock(fd, syscall.LOCK_EX, 0)
}

// keepLock takes the lock for the rest of this process's life, as a descriptor
// that nothing closes: a free lock then means that the process is gone.
func keepLock(dir string) error {
	f, err := Lock(dir)
	if err != nil {
		return err
	}
	_, err = syscall.Dup(int(f.Fd()))
	return errors.Join(err, f.Close())
}

// flock locks a file, waiting at most patience.
func flock(fd, how int, patience time.Duration) error {
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := syscall.Flock(fd, how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case err == syscall.EINTR:
			continue
		case err != syscall.EWOULDBLOCK:
			return fmt.Errorf("flock: %w", err)
		case time.Since(begin) >= patience:
			return ErrLocked
		}
	}
}
