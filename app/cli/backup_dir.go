package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"molrun/app/fault"
)

// The names in a directory of backups; the package comment says what they are.
const (
	backupsMarker = "molrun-backups.json"
	backupFile    = "backup.json"
	sumsFile      = "SHA256SUMS"
	backupData    = "data"
	partialDir    = "partial"
	backupLayout  = "20060102T150405Z"
	backupFormat  = 1
)

// backups is a directory of backups of one database.
type backups struct{ dir string }

// backupsOf says whose backups a directory has.
type backupsOf struct {
	Format   int    `json:"format"`
	Database string `json:"database"`
}

// backupRecord says what a backup is.
type backupRecord struct {
	Format   int       `json:"format"`
	Name     string    `json:"name"`
	Database string    `json:"database"` // the name of the database
	Schema   int       `json:"schema"`
	Commit   int64     `json:"commit"`
	TakenAt  time.Time `json:"takenAt"`
	Program  string    `json:"program"` // version that made it
	Jobs     int       `json:"jobs"`
	Uploads  int       `json:"uploads"`
	Files    int       `json:"files"`
	Bytes    int64     `json:"bytes"`
	Copied   int64     `json:"bytesCopied"`
	Linked   int64     `json:"bytesLinked"`  // to the backup before
	Problems []string  `json:"problems"`     // what the live data lacked already
	Sums     string    `json:"sha256OfSums"` // of SHA256SUMS
}

// openBackups takes a directory for the backups of a database, alone. What is
// neither empty nor such a directory is refused, as are backups of another.
func openBackups(dir, database string) (b *backups, unlock func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("make the directory of backups: %w", err)
	}
	lock, err := lockDir(dir, "another backup is being made into "+dir+"; wait for its end")
	if err != nil {
		return nil, nil, err
	}
	b = &backups{dir}
	if err := b.claim(database); err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	return b, lock.Close, nil
}

// lockDir holds a directory until the file is closed, also by the end of the
// process. Where a file system has no locks there is none.
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

// claim makes the directory that of this database's backups.
func (b *backups) claim(database string) error {
	of, err := readJSON[backupsOf](b.path(backupsMarker))
	switch {
	case err == nil && of.Database != database:
		return fault.Errorf(fault.Invalid, "%s has the backups of another service; give this one a directory of its own", b.dir)
	case err == nil:
		return refuseFormat(b.path(backupsMarker), of.Format)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != "lost+found" && !strings.HasPrefix(e.Name(), "."+backupsMarker) {
			return fault.Errorf(fault.Invalid, "%s holds other things, such as %s; name an empty directory or one of backups", b.dir, e.Name())
		}
	}
	return writeJSON(b.path(backupsMarker), backupsOf{backupFormat, database})
}

func refuseFormat(file string, format int) error {
	if format == backupFormat {
		return nil
	}
	return fmt.Errorf("%s has format %d, this version of molrun knows %d; use the version that made it", file, format, backupFormat)
}

func (b *backups) path(names ...string) string { return filepath.Join(b.dir, filepath.Join(names...)) }

// names gives the finished backups, oldest first.
func (b *backups) names() ([]string, error) {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if isBackupName(e.Name()) && e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// isBackupName knows names that freeName gives.
func isBackupName(name string) bool {
	moment, _, _ := strings.Cut(name, "-")
	_, err := time.Parse(backupLayout, moment)
	return err == nil
}

// freeName gives a new backup its name. It sorts after all there are, also
// where the clock went back.
func (b *backups) freeName(taken time.Time) (string, error) {
	names, err := b.names()
	if err != nil {
		return "", err
	}
	name := taken.UTC().Format(backupLayout)
	if len(names) == 0 || names[len(names)-1] < name {
		return name, nil
	}
	last, number, _ := strings.Cut(names[len(names)-1], "-")
	n := 1
	if number != "" {
		if _, err := fmt.Sscanf(number, "%03d", &n); err != nil {
			return "", fmt.Errorf("%s is no name of a backup; rename it", names[len(names)-1])
		}
	}
	return fmt.Sprintf("%s-%03d", last, n+1), nil
}

// read gives a finished backup's record and its files with their digests.
func (b *backups) read(name string) (*backupRecord, map[string]string, error) {
	record, err := readJSON[backupRecord](b.path(name, backupFile))
	if err == nil {
		err = refuseFormat(b.path(name, backupFile), record.Format)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read backup %s: %w", name, err)
	}
	files, digest, err := readSums(b.path(name, sumsFile))
	if err == nil && (digest != record.Sums || len(files) != record.Files) {
		err = fmt.Errorf("%s is damaged; take another backup", b.path(name, sumsFile))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read backup %s: %w", name, err)
	}
	return record, files, nil
}

func readJSON[T any](path string) (*T, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", path, err)
	}
	return &v, nil
}

// writeJSON makes a file appear whole or not at all.
func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return writeWhole(path, append(text, '\n'))
}

// writeWhole writes a file of mode 0600, whole and durable or not at all.
func writeWhole(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncFolders makes all names below a folder durable.
func syncFolders(top string) error {
	return filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = syncFolder(path)
		}
		return err
	})
}
