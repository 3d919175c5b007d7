package storage

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	bolt "go.etcd.io/bbolt"
)

// A database has a name of its own from its beginning to its end, which the
// marker beside it repeats: so neither nothing nor another's records can take
// its place. Beside that it has a lineage, which compacting changes, since it
// begins to count commits anew.
const (
	metaID      = "id"
	metaLineage = "lineage"
)

// MarkerSuffix ends the name of the marker beside a database.
const MarkerSuffix = ".initialised"

const (
	markerText = "The records of this data directory are in the database beside this file.\n" +
		"While this file is here, a missing or empty database is refused, and so is\n" +
		"any other than this one:\n"
	markerLine = "database: "
)

// expectRecords refuses to begin anew where there were records, and gives the
// name of the database that has to be there, "" where none is known.
func expectRecords(path string) (id string, err error) {
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
		return "", fmt.Errorf("the database is missing, but %s says that it was here; restore a backup, or remove that file to begin anew", marker)
	case err != nil:
		return "", err
	case info.Size() == 0:
		return "", fmt.Errorf("the database is empty, but %s says that it was not; restore a backup, or remove both files to begin anew", marker)
	}
	return idInMarker(string(text)), nil
}

func idInMarker(text string) string {
	for line := range strings.Lines(text) {
		if id, ok := strings.CutPrefix(line, markerLine); ok {
			return strings.TrimSpace(id)
		}
	}
	return ""
}

// expectDatabase refuses a database that is not the one that was here.
func expectDatabase(db *bolt.DB, want string) error {
	if want == "" {
		return nil
	}
	id, err := readMeta(db, metaID)
	if err == nil && id != want {
		err = fmt.Errorf("the database is not the one that was here (it is %q, %s names %q); put that one back, or remove the file %[2]s to go on with this one",
			id, filepath.Base(db.Path())+MarkerSuffix, want)
	}
	return err
}

// leaveMarker writes the marker, unless it says what it has to.
func leaveMarker(db *bolt.DB) error {
	id, err := readMeta(db, metaID)
	if err != nil {
		return err
	}
	if text, err := os.ReadFile(db.Path() + MarkerSuffix); err == nil && idInMarker(string(text)) == id {
		return syncDir(filepath.Dir(db.Path()))
	}
	return Expect(db.Path(), id)
}

// nameDatabase gives a database its names, where it has none.
func nameDatabase(tx *bolt.Tx) error {
	meta := tx.Bucket([]byte(bucketMeta))
	for _, name := range []string{metaID, metaLineage} {
		if meta.Get([]byte(name)) != nil {
			continue
		}
		if err := meta.Put([]byte(name), []byte(rand.Text())); err != nil {
			return err
		}
	}
	return nil
}

// readMeta gives a text of the bucket meta, "" where there is none.
func readMeta(db *bolt.DB, name string) (text string, err error) {
	err = db.View(func(tx *bolt.Tx) error {
		if meta := tx.Bucket([]byte(bucketMeta)); meta != nil {
			text = string(meta.Get([]byte(name)))
		}
		return nil
	})
	return text, err
}

// Expect makes every start at path refuse a missing or empty database and any
// other than the one with this name, as if it had been there before.
func Expect(path, id string) error {
	return writeFile(path+MarkerSuffix, func(f *os.File) error {
		_, err := f.WriteString(markerText + markerLine + id + "\n")
		return err
	})
}
