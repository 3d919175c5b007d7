package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"molrun/app/base/durable"
	"molrun/app/base/fault"
	"molrun/app/server/snapshot"
)

// Names in a backup directory, described in the package comment.
const (
	markerFile = "molrun-backups.json"
	recordFile = "backup.json"
	sumsFile   = "SHA256SUMS"
	dataDir    = "data"
	partialDir = "partial"
)

// format is the version of the layout of backup directories.
const format = 1

// Dir is a directory of backups of one database.
type Dir string

// marker identifies the database of a backup directory.
type marker struct {
	Format   int    `json:"format"`
	Database string `json:"database"`
}

// lock reserves the directory for one backup of a database, creating it if necessary. It
// rejects a directory with other content or with backups of another database.
func (d Dir) lock(database string) (unlock func() error, err error) {
	if err := durable.MkdirAll(string(d), 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of backups: %w", err)
	}
	lock, err := lockDir(string(d), fmt.Sprintf("another backup into %s is in progress; wait until it is done", d))
	if err != nil {
		return nil, err
	}
	if err := d.claim(database); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock.Close, nil
}

// claim marks an empty directory as the backup directory of a database, or checks the
// marker.
func (d Dir) claim(database string) error {
	of, err := readJSON[marker](d.path(markerFile))
	switch {
	case err == nil && of.Database != database:
		return fault.Errorf(fault.Invalid, "%s contains the backups of another service; use a separate directory", d)
	case err == nil:
		return checkFormat(d.path(markerFile), of.Format)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != "lost+found" && !strings.HasPrefix(e.Name(), "."+markerFile) {
			return fault.Errorf(fault.Invalid, "%s holds other things, such as %s; name an empty directory or one of backups", d, e.Name())
		}
	}
	return writeJSON(d.path(markerFile), marker{format, database})
}

func checkFormat(file string, got int) error {
	if got == format {
		return nil
	}
	return fmt.Errorf("%s has format %d, this version of molrun knows %d; use the version that made it", file, got, format)
}

func (d Dir) path(names ...string) string {
	return filepath.Join(string(d), filepath.Join(names...))
}

// Names returns the names of the finished backups, oldest first.
func (d Dir) Names() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if isName(e.Name()) && e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// isName reports whether a name could come from freeName.
func isName(name string) bool {
	moment, number, numbered := strings.Cut(name, "-")
	_, err := time.Parse(snapshot.NameLayout, moment)
	return err == nil && (!numbered || isNumber(number))
}

// isNumber reports whether text consists of three or more digits.
func isNumber(text string) bool {
	return len(text) >= 3 && strings.Trim(text, "0123456789") == ""
}

// freeName returns the name of a new backup. It sorts after all others, even if the clock
// was set back.
func (d Dir) freeName(taken time.Time) (string, error) {
	names, err := d.Names()
	if err != nil {
		return "", err
	}
	name := taken.UTC().Format(snapshot.NameLayout)
	if len(names) == 0 || names[len(names)-1] < name {
		return name, nil
	}
	last, number, _ := strings.Cut(names[len(names)-1], "-")
	n := 1
	if number != "" {
		if _, err := fmt.Sscanf(number, "%03d", &n); err != nil {
			return "", fmt.Errorf("%s is not a valid backup name; rename it", names[len(names)-1])
		}
	}
	return fmt.Sprintf("%s-%03d", last, n+1), nil
}
