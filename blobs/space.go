package blobs

import (
	"errors"
	"fmt"
	"syscall"

	"molrun/app"
	"molrun/app/fault"
)

// spaceInterval is how many bytes of an upload pass between two looks at the
// free space.
const spaceInterval = 64 << 20

// Space gives the bytes that are free where path lies, and how many of them
// uploads leave alone unless configured otherwise.
func Space(path string) (free, reserve int64, err error) {
	disk, err := diskOf(path)
	return disk.Free, disk.Reserve, err
}

func diskOf(path string) (app.Disk, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return app.Disk{}, fmt.Errorf("look at free space: %w", err)
	}
	size := int64(s.Blocks) * int64(s.Bsize)
	return app.Disk{Size: size, Free: int64(s.Bavail) * int64(s.Bsize), Reserve: max(1<<30, size/20)}, nil
}

// Disk tells how full the disk of this directory is.
func (d *Dir) Disk() (app.Disk, error) {
	disk, err := diskOf(d.path)
	if d.options.Reserve != 0 {
		disk.Reserve = d.options.Reserve
	}
	return disk, err
}

// checkSpace refuses an upload of this length where it would eat into the
// reserve, which is what lets records be written on a disk that uploads fill.
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

// diskError gives an error of the file system the code that a client can act on.
func diskError(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return storageFull(fmt.Errorf("%s: %w", op, err))
	case errors.Is(err, syscall.EFBIG):
		return &fault.Error{
			Code:    fault.FileTooLarge,
			Message: "The server's file system can't hold a file of this length; split it.",
			Err:     fmt.Errorf("%s: %w", op, err),
		}
	}
	return fmt.Errorf("%s: %w", op, err)
}

func storageFull(cause error) error {
	return &fault.Error{
		Code:    fault.StorageFull,
		Message: "The server's disk is full; delete files or jobs that are no longer needed, or ask an administrator.",
		Err:     cause,
	}
}
