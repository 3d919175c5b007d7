package blobs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"molrun/app"
)

// JobSize gives the bytes of all files of a job, 0 where it has none. What
// vanishes while it looks counts as gone.
func (d *Dir) JobSize(id app.JobID) (size int64, err error) {
	if _, err := app.ParseID(string(id)); err != nil {
		return 0, fmt.Errorf("measure job %q: %w", id, err)
	}
	err = fs.WalkDir(d.root.FS(), path.Join(jobsDir, string(id)), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return unlessGone(err)
		}
		info, err := e.Info()
		if err == nil {
			size += info.Size()
		}
		return unlessGone(err)
	})
	if err != nil {
		return size, fmt.Errorf("measure job %s: %w", id, err)
	}
	return size, nil
}

// unlessGone takes what is gone, or closed by the program that made it, for
// nothing.
func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}
