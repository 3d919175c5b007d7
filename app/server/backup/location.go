package backup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"molrun/app/base/fault"
)

// refuseWithin returns an error if the backup directory is inside the data directory.
func refuseWithin(dir, data string) error {
	dir, err := realPath(dir)
	if err != nil {
		return err
	}
	if data, err = realPath(data); err != nil {
		return err
	}
	if dir == data || strings.HasPrefix(dir, data+string(filepath.Separator)) {
		return fault.Errorf(fault.Invalid, "%s is inside the data directory; choose another directory, preferably on another disk", dir)
	}
	return nil
}

// realPath resolves symbolic links in the existing part of a path.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest), nil
		}
		if dir == filepath.Dir(dir) {
			return path, nil
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// lockDir locks a directory until the file is closed or the process exits. On a file
// system without locks it does not lock.
func lockDir(dir, taken string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, errors.Join(fault.Errorf(fault.Unavailable, "%s", taken), f.Close())
	case err == nil, errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EOPNOTSUPP):
		return f, nil
	}
	return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
}
