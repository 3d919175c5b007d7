package task

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"molrun/app/task/process"
	"molrun/app/task/protocol"
)

// syncOutput makes the output of a task that is done durable. Otherwise, after a
// power cut, the outcome could be there without the files, and the service would
// take an empty result for the job's. If the disk fails, the task counts as
// interrupted and runs again.
func (s *shim) syncOutput() {
	if s.outcome.Cause != protocol.CauseDone || s.unsynced {
		return
	}
	var err error
	s.outcome.OutputFiles, s.outcome.OutputBytes, err = syncTree(filepath.Join(s.work, OutDir))
	if err == nil {
		err = syncWork(s.work)
	}
	if err != nil {
		s.outcome.Cause = protocol.CauseInterrupted
		s.outcome.Message = "The program ended well, but its output could not be stored: " + process.SystemCause(err) + "."
	}
}

// syncTree makes files and folders durable, and counts the files. It skips what
// it may not open and what was removed, and does not follow links.
func syncTree(path string) (files int, bytes int64, err error) {
	err = filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && (d.IsDir() || d.Type().IsRegular()) {
			err = syncFile(path)
		}
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				files++
				bytes += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		return err
	})
	return files, bytes, err
}

// syncWork makes the names in the work directory durable, the output's among them.
// If the program has put something else in its place, there is no output.
func syncWork(path string) error {
	err := syncFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) {
		return nil
	}
	return err
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) { // this file system can't
		err = nil
	}
	return errors.Join(err, f.Close())
}
