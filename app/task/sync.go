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

// syncOutput makes the output of a completed task durable. Otherwise, after a power
// failure, the outcome could exist without the files, and the service would accept an
// empty result. If the disk fails, the task counts as interrupted and runs again.
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
		s.outcome.Message = "The program succeeded, but its output could not be stored: " + process.SystemCause(err) + "."
	}
}

// syncTree makes files and folders durable, and counts the files. It skips entries that
// it can't open for lack of permission or that were removed, and does not follow links.
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

// syncWork makes the names in the work directory durable, including that of the output.
// If the program has replaced the directory with something else, there is no output.
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
	if errors.Is(err, syscall.EINVAL) { // not supported by this file system
		err = nil
	}
	return errors.Join(err, f.Close())
}
