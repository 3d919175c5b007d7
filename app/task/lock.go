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

// ErrLocked means that another process runs the task.
var ErrLocked = errors.New("another process runs this task")

// lockTimeout is how long Lock waits for processes that only check the lock (Locked).
const lockTimeout = time.Second

// Lock takes the lock of an attempt. The task is alive until every process that inherited
// the file has closed it. If the lock is held, Lock returns ErrLocked.
func Lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the task: %w", err)
	}
	if err := flock(int(f.Fd()), syscall.LOCK_EX, lockTimeout); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Locked reports whether a process runs the task. It reports false if a program has
// removed the lock or replaced it with anything but a regular file.
func Locked(dir string) (bool, error) {
	f, err := openFile(dir, LockFile)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrUnreadable) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("check the task's lock: %w", err)
	}
	err = errors.Join(flock(int(f.Fd()), syscall.LOCK_SH, 0), f.Close())
	if errors.Is(err, ErrLocked) {
		return true, nil
	}
	return false, err
}

// inheritLock takes over the lock held by the starter of this process, so that it is held
// without a gap.
func inheritLock(fd int, dir string) error {
	var inherited, expected syscall.Stat_t
	if err := syscall.Fstat(fd, &inherited); err != nil {
		return fmt.Errorf("inherit the lock: descriptor %d: %w", fd, err)
	}
	if err := syscall.Stat(filepath.Join(dir, LockFile), &expected); err != nil {
		return fmt.Errorf("inherit the lock: %s: %w", LockFile, err)
	}
	if inherited.Dev != expected.Dev || inherited.Ino != expected.Ino {
		return fmt.Errorf("inherit the lock: descriptor %d is not %s of this task", fd, LockFile)
	}
	return flock(fd, syscall.LOCK_EX, 0)
}

// keepLock takes the lock for the rest of this process's life, with a descriptor that
// nothing closes: if the lock is free, the process has exited.
func keepLock(dir string) error {
	f, err := Lock(dir)
	if err != nil {
		return err
	}
	_, err = syscall.Dup(int(f.Fd()))
	return errors.Join(err, f.Close())
}

// flock locks a file, and returns ErrLocked if that takes longer than timeout.
func flock(fd, how int, timeout time.Duration) error {
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := syscall.Flock(fd, how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case err == syscall.EINTR:
			continue
		case err != syscall.EWOULDBLOCK:
			return fmt.Errorf("flock: %w", err)
		case time.Since(begin) >= timeout:
			return ErrLocked
		}
	}
}
