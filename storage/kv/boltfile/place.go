package boltfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ErrGone means that the file of an open database is no longer at its path: it, or a
// directory above it, was deleted, moved or replaced. Later commits go to an unlinked or
// misplaced file.
var ErrGone = errors.New("the database is no longer at its path")

// Location identifies the file of an open database at its path.
type Location struct {
	path string
	file fs.FileInfo
}

// PlaceOf returns the place of a database that was just opened at path.
func PlaceOf(path string) (Location, error) {
	info, err := os.Stat(path)
	return Location{path, info}, err
}

// Check returns ErrGone if the file is known to be no longer there.
func (p Location) Check() error {
	info, err := os.Stat(p.path)
	switch {
	case err == nil && !os.SameFile(info, p.file):
		return fmt.Errorf("%w: %s is now a different file", ErrGone, p.path)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %s does not exist", ErrGone, p.path)
	}
	return nil
}
