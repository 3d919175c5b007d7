package blobs

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"molrun/app"
	"molrun/app/fault"
	"molrun/blobs/result"
)

// Space returns the free bytes of the disk that holds path, and how many of
// them uploads leave free unless configured otherwise.
func Space(path string) (free, reserve int64, err error) {
	disk, err := diskOf(path)
	return disk.Free, disk.Reserve, err
}

// Disk returns how full the disk of this directory is.
func (d *Dir) Disk() (app.Disk, error) {
	disk, err := diskOf(d.path)
	if d.options.Reserve != 0 {
		disk.Reserve = d.options.Reserve
	}
	return disk, err
}

func diskOf(path string) (app.Disk, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return app.Disk{}, fmt.Errorf("look up free space: %w", err)
	}
	size := int64(s.Blocks) * int64(s.Bsize)
	return app.Disk{Size: size, Free: int64(s.Bavail) * int64(s.Bsize), Reserve: max(1<<30, size/20)}, nil
}

// checkSpace refuses an upload of this length if it would use up the reserve.
// The reserve lets records be written on a disk that uploads have filled.
func (d *Dir) checkSpace(length int64) error {
	disk, err := d.Disk()
	if err != nil {
		return err
	}
	if disk.Free-length < disk.Reserve {
		return storageFull(fmt.Errorf("%d bytes free, %d wanted, %d reserved", disk.Free, length, disk.Reserve))
	}
	return nil
}

// diskError adds the operation to an error of the file system, and the code if
// a client can act on it.
func diskError(op string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", op, err)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return storageFull(err)
	case errors.Is(err, syscall.EFBIG):
		return &fault.Error{
			Code:    fault.FileTooLarge,
			Message: "The server's file system can't hold a file of this length; split it.",
			Err:     err,
		}
	}
	return err
}

func storageFull(cause error) error {
	return &fault.Error{
		Code:    fault.StorageFull,
		Message: "The server's disk is full; delete files or jobs that are no longer needed, or ask an administrator.",
		Err:     cause,
	}
}

// JobSize returns the bytes of all files of a job, 0 if it has none.
func (d *Dir) JobSize(id app.JobID) (size int64, err error) {
	if _, err := app.ParseID(string(id)); err != nil {
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
