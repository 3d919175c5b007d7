package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"molrun/app/base/fault"
	"molrun/app/server/config"
)

// CheckSharedDir checks the directory that this machine shares with the cluster. An error
// with the code Unavailable can be temporary, for example if the directory is not mounted
// yet; any other means that the directory is not safe.
func CheckSharedDir(shared, data string) error {
	info, err := os.Stat(shared)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.Errorf(fault.Unavailable, "%s does not exist; mount or create it, owned by the user of this service", shared)
	case err != nil:
		return fault.Errorf(fault.Unavailable, "%s can't be inspected: %v", shared, err)
	case !info.IsDir():
		return fault.Errorf(fault.Invalid, "%s is not a folder; set slurm.shared_dir to another", shared)
	}
	if overlap, err := overlap(shared, data); err != nil || overlap {
		return errors.Join(err, fault.Errorf(fault.Invalid, "%s and the data directory %s overlap, but nodes must not reach the data directory; set slurm.shared_dir to a folder elsewhere", shared, data))
	}
	if text := OtherOwner(shared, info); text != "" {
		return fault.Errorf(fault.Invalid, "%s", text)
	}
	if perm := info.Mode().Perm(); perm&0o022 != 0 {
		return fault.Errorf(fault.Invalid, "%s is writable by others (mode %#o), who could run anything on the cluster; run chmod 700 on it", shared, perm)
	}
	if err := syscall.Access(shared, 7); err != nil { // read, write and search
		return fault.Errorf(fault.Unavailable, "%s can't be written to: %v", shared, err)
	}
	return nil
}

// overlap reports whether one of two directories is in the other, following symbolic
// links.
func overlap(a, b string) (bool, error) {
	a, errA := filepath.EvalSymlinks(a)
	b, errB := filepath.EvalSymlinks(b)
	if errors.Is(errB, fs.ErrNotExist) { // the data directory has not been created yet
		return false, errA
	}
	if err := errors.Join(errA, errB); err != nil {
		return false, fmt.Errorf("follow links: %w", err)
	}
	return config.Inside(a, b) || config.Inside(b, a), nil
}
