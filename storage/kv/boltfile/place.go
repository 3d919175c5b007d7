package boltfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ErrGone says that the file of an open database is no longer at its path: it, or a
// directory above it, was deleted, moved or replaced. Later commits go to a file that
// no longer has a name.
var ErrGone = errors.New("the database is no longer at its path")

// Place is where the file of an open database is.
type Place struct {
	path string
	file fs.FileInfo
}

// PlaceOf returns the place of a database that was just opened at path.
func PlaceOf(path string) (Place, error) {
	info, err := os.Stat(path)
	return Place{path, info}, err
}

// Check returns ErrGone if the file is certainly not there any more.
func (p Place) Check() error {
	info, err := os.Stat(p.path)
	switch {
	case err == nil && !os.SameFile(info, p.file):
		return fmt.Errorf("%w: %s is another file now", ErrGone, p.path)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: there is no %s", ErrGone, p.path)
	}
	return nil
}
