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

// MarkerSuffix ends the name of the marker, the file beside a database that
// repeats its ID. With it, a missing, empty or foreign database is an error and
// not a fresh start.
const MarkerSuffix = ".initialised"

const (
	markerText = "The records of this data directory are in the database beside this file.\n" +
		"While this file is here, a missing or empty database is refused, and so is\n" +
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

// expectedID returns the ID that the database at path must have, "" if any
// will do. It refuses a missing or empty file beside a marker.
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
		return "", fmt.Errorf("the database is missing, but %s says that there was one; restore a backup, or remove that file to start afresh", marker)
	case err != nil:
		return "", err
	case info.Size() == 0:
		return "", fmt.Errorf("the database is empty, but %s says that it was not; restore a backup, or remove both files to start afresh", marker)
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

// expectID refuses a database with another ID.
func expectID(db *bolt.DB, want string) error {
	if want == "" {
		return nil
	}
	have, err := ReadIdentity(db)
	if err == nil && have.ID != want {
		err = fmt.Errorf("the database is not the one that was here (it is %q, %s names %q); put that one back, or remove the file %[2]s to use this one",
			have.ID, filepath.Base(db.Path())+MarkerSuffix, want)
	}
	return err
}

// Confirm syncs the database and writes its marker. What was read so far may
// come from the page cache of a process that crashed before its sync.
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
