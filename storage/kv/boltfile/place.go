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

// Location records the path of an open database and the identity of its file.
type Location struct {
	path string
	file fs.FileInfo
}

// PlaceOf returns the location of a database that was just opened at path.
func PlaceOf(path string) (Location, error) {
	info, err := os.Stat(path)
	return Location{path, info}, err
}

// Check returns an error that wraps ErrGone if the file is known to be no longer at its
// path.
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
