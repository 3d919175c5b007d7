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

// Entries of the shared directory.
const (
	attemptsDir    = "attempts"
	submissionsDir = "submissions"
	binDir         = "bin"
	aliveFile      = ".alive" // written to test whether the folder is writable
)

// folderWrite is the name in health of writing aliveFile.
const folderWrite = "write"

// makeDirs creates the subdirectories of the shared directory, once for each Executor. If
// they vanish later, a file system is not mounted, and creating them again would hide
// that.
func makeDirs(shared string) error {
	for _, name := range []string{attemptsDir, submissionsDir, binDir} {
		if err := os.Mkdir(filepath.Join(shared, name), 0o700); err != nil && !os.IsExist(err) {
			return fault.Errorf(fault.Unavailable, "The folder shared with the cluster is not usable: %v", err)
		}
	}
	return nil
}

// watchFolder regularly writes to the shared folder until ctx ends: reads might be served
// from a cache. A write to a server that is down can hang forever.
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
			e.folder.recordResult(folderWrite, errors.New("it does not respond"), e.options.Now())
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

// writeFolder returns why the shared folder is not writable now, without its path.
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

// Folder returns why the shared folder is not writable, nil if it is, and the time of the
// last change; zero before the first test.
func (e *Executor) Folder() (since time.Time, err error) { return e.folder.state() }
