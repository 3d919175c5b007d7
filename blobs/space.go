package blobs

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"molrun/app"
	"molrun/app/fault"
	"molrun/app/sortid"
	"molrun/blobs/result"
)

// Disk returns how full the disk of this directory is.
func (d *Dir) Disk() (app.Disk, error) { return Space(d.path, d.options.Reserve) }

// Space returns how full the disk that holds path is. A reserve of 0 means the
// default.
func Space(path string, reserve int64) (app.Disk, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return app.Disk{}, fmt.Errorf("look up free space: %w", err)
	}
	size := int64(s.Blocks) * int64(s.Bsize)
	if reserve == 0 {
		reserve = max(1<<30, size/20)
	}
	files := int64(s.Files)
	return app.Disk{
		Size: size, Free: int64(s.Bavail) * int64(s.Bsize), Reserve: reserve,
		Files: files, FreeFiles: int64(s.Ffree), ReserveFiles: min(max(reservedFiles, files/100), files/10),
	}, nil
}

// reservedFiles is how many files at least can still be made when uploads are refused:
// 1 % of all, but no less than this, except on a very small file system.
const reservedFiles = 1000

// diskError adds the operation to an error of the file system, and the code if
// a client can act on it.
func diskError(op string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", op, err)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &fault.Error{
			Code:    fault.StorageFull,
			Message: "The server's disk is full; delete files or jobs that are no longer needed, or ask an administrator.",
			Err:     err,
		}
	case errors.Is(err, syscall.EFBIG):
		return &fault.Error{
			Code:    fault.FileTooLarge,
			Message: "The server's file system can't hold a file of this length; split it.",
			Err:     err,
		}
	}
	return err
}

// JobSize returns the bytes of all files of a job, 0 if it has none.
func (d *Dir) JobSize(id app.JobID) (size int64, err error) {
	if _, err := sortid.Parse(string(id)); err != nil {
		return 0, fmt.Errorf("measure job %q: %w", id, err)
	}
	err = fs.WalkDir(d.root.FS(), result.JobDir(id), func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				size += info.Size()
			}
		}
		// A file may vanish during the walk, and a program may make its own
		// directories unreadable.
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		return err
	})
	if err != nil {
		return size, fmt.Errorf("measure job %s: %w", id, err)
	}
	return size, nil
}
