package boltfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	bolt "go.etcd.io/bbolt"
)

// MarkerSuffix is the suffix of the marker, a file next to a database that repeats its
// ID. With a marker, a missing, empty or foreign database is an error rather than a fresh
// start.
const MarkerSuffix = ".initialised"

const (
	markerText = "The records of this data directory are in the database next to this file.\n" +
		"While this file exists, the service rejects a missing or empty database, and\n" +
		"any other than this one:\n"
	markerLine = "database: "
)

// Expect writes the marker of the database at path, before or after the
// database itself.
func Expect(path, id string) error {
	return replace(path+MarkerSuffix, func(f *os.File) error {
		_, err := f.WriteString(markerText + markerLine + id + "\n")
		return err
	})
}

// expectedID returns the ID that the database at path must have, or "" if any is allowed.
// It rejects a missing or empty database that has a marker.
func expectedID(path string) (id string, err error) {
	marker := filepath.Base(path) + MarkerSuffix
	text, err := os.ReadFile(path + MarkerSuffix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("the database is missing, although %s exists; restore a backup, or remove that file to start over", marker)
	case err != nil:
		return "", err
	case info.Size() == 0:
		return "", fmt.Errorf("the database is empty, although %s exists; restore a backup, or remove both files to start over", marker)
	}
	return markedID(string(text)), nil
}

func markedID(text string) string {
	for line := range strings.Lines(text) {
		if id, ok := strings.CutPrefix(line, markerLine); ok {
			return strings.TrimSpace(id)
		}
	}
	return ""
}

// expectID rejects a database with a different ID.
func expectID(db *bolt.DB, want string) error {
	if want == "" {
		return nil
	}
	have, err := ReadIdentity(db)
	if err == nil && have.ID != want {
		err = fmt.Errorf("the database has been replaced by another one (it is %q, %s expects %q); restore the original, or remove the file %[2]s to use this one",
			have.ID, filepath.Base(db.Path())+MarkerSuffix, want)
	}
	return err
}

// Confirm syncs the database and writes its marker. Data read so far might come from the
// page cache of a process that crashed before its sync.
func Confirm(db *bolt.DB) error {
	if err := db.Sync(); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	have, err := ReadIdentity(db)
	if err != nil {
		return err
	}
	if text, err := os.ReadFile(db.Path() + MarkerSuffix); err == nil && markedID(string(text)) == have.ID {
		return SyncDir(filepath.Dir(db.Path()))
	}
	return Expect(db.Path(), have.ID)
}
