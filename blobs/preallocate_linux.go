package blobs

import (
	"errors"
	"os"
	"syscall"
)

const fallocKeepSize = 1 // FALLOC_FL_KEEP_SIZE

// preallocate reserves blocks without changing the file's size. On a file system without
// support for it, it reserves nothing.
func preallocate(f *os.File, length int64) (reserved bool, err error) {
	for {
		err := syscall.Fallocate(int(f.Fd()), fallocKeepSize, 0, length)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS):
			return false, nil
		}
		return err == nil, err
	}
}
