package blobs

import (
	"errors"
	"fmt"
	"syscall"

	"molrun/app"
)

// spaceInterval is how many bytes of an upload pass between two looks at the
// free space.
const spaceInterval = 64 << 20

// checkSpace refuses an upload of this length where it would eat into the
// reserve, which is what lets records be written on a disk that uploads fill.
func (d *Dir) checkSpace(length int64) error {
	var s syscall.Statfs_t
	if err := syscall.Statfs(d.path, &s); err != nil {
		return fmt.Errorf("look at free space: %w", err)
	}
	free := int64(s.Bavail) * int64(s.Bsize)
	reserve := d.options.Reserve
	if reserve == 0 {
		reserve = max(1<<30, int64(s.Blocks)*int64(s.Bsize)/20)
	}
	if free-length < reserve {
		return storageFull(fmt.Errorf("%d bytes free, %d wanted, %d reserved", free, length, reserve))
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
		return &app.Error{
			Code:    app.FileTooLarge,
			Message: "The server's file system can't hold a file of this length; split it.",
			Err:     fmt.Errorf("%s: %w", op, err),
		}
	}
	return fmt.Errorf("%s: %w", op, err)
}

func storageFull(cause error) error {
	return &app.Error{
		Code:    app.StorageFull,
		Message: "The server's disk is full; delete files or jobs that are no longer needed, or ask an administrator.",
		Err:     cause,
	}
}
