package slurm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"molrun/app/base/fault"
)

// The parts of the shared directory.
const (
	attemptsDir    = "attempts"
	submissionsDir = "submissions"
	binDir         = "bin"
	aliveFile      = ".alive" // written to see whether the folder can be
)

// folderWrite is the write of aliveFile, as health calls it.
const folderWrite = "write"

// makeDirs makes the parts of the shared directory, once for each Executor. If
// they vanish later, a file system is not mounted, and making them again would
// hide that.
func makeDirs(shared string) error {
	for _, name := range []string{attemptsDir, submissionsDir, binDir} {
		if err := os.Mkdir(filepath.Join(shared, name), 0o700); err != nil && !os.IsExist(err) {
			return fault.Errorf(fault.Unavailable, "The folder that is shared with the cluster can't be used: %v", err)
		}
	}
	return nil
}

// watchFolder writes to the shared folder regularly until ctx ends: reading alone may be
// answered from a cache. A write to a server that is down may take forever.
func (e *Executor) watchFolder(ctx context.Context) {
	ticker := time.NewTicker(e.options.Poll)
	defer ticker.Stop()
	for {
		written := make(chan error, 1)
		go func() { written <- e.writeFolder() }()
		select {
		case err := <-written:
			e.folder.recordResult(folderWrite, err, e.options.Now())
		case <-time.After(e.options.Timeout):
			e.folder.recordResult(folderWrite, errors.New("it does not answer"), e.options.Now())
			select {
			case <-written:
			case <-ctx.Done():
			}
		case <-ctx.Done():
			select {
			case <-written: // nothing is written after Close, unless the folder hangs
			case <-time.After(e.options.Timeout):
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// writeFolder returns why the shared folder can't be written now, without its path.
func (e *Executor) writeFolder() error {
	var err error
	if e.program.installed() {
		_, err = os.Stat(e.AttemptsDir())
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(e.options.SharedDir, aliveFile), []byte("molrun\n"), 0o600)
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}

// Folder returns why the shared folder can't be written, nil if it can, and since when that
// has been so. The time is zero before the first try.
func (e *Executor) Folder() (since time.Time, err error) { return e.folder.state() }
