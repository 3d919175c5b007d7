package task

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"molrun/app/protocol"
)

// keepOutput makes durable what the program of a task that is done has left.
// Otherwise the outcome could outlive a power cut that the files before it do
// not, and an empty result would be taken for the job's. Where the disk fails,
// the task has to run again.
func (s *shim) keepOutput() {
	if s.out.Cause != protocol.CauseDone {
		return
	}
	var err error
	if s.out.OutputFiles, s.out.OutputBytes, err = syncTree(filepath.Join(s.work, OutDir)); err != nil {
		s.out.Cause = protocol.CauseInterrupted
		s.out.Message = "The program ended well, but its output could not be stored: " + systemCause(err) + "."
	}
}

// syncTree makes files and folders durable, and counts the files. What its program has closed or is
// gone is passed over, links are not followed.
func syncTree(path string) (files int, bytes int64, err error) {
	err = filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && (d.IsDir() || d.Type().IsRegular()) {
			err = syncFile(path)
		}
		if info := regular(d); err == nil && info != nil {
			files++
			bytes += info.Size()
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		return err
	})
	return files, bytes, err
}

// regular gives what is known of a file, nil where it is none.
func regular(d fs.DirEntry) fs.FileInfo {
	if d == nil || !d.Type().IsRegular() {
		return nil
	}
	info, err := d.Info()
	if err != nil {
		return nil
	}
	return info
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) { // a file system that can't
		err = nil
	}
	return errors.Join(err, f.Close())
}

// systemCause gives what the system said, without the path.
func systemCause(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return err.Error()
}
