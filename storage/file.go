package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"molrun/app"
)

const (
	lockWait = 2 * time.Second

	// mapSize is address space, not memory or disk. A file that outgrows its
	// map has to wait for every reader, and every reader for that.
	mapSize = int64(4) << 30

	markerSuffix = ".initialised"
	markerText   = "The records of this data directory are in the database beside this file.\n" +
		"While this file is here, a missing or empty database is refused.\n"
)

// openFile opens the bbolt file, but no other in its place.
func openFile(path string, maxSize int64) (*bolt.DB, error) {
	if err := expectRecords(path); err != nil {
		return nil, err
	}
	o := &bolt.Options{
		Timeout:      lockWait,
		FreelistType: bolt.FreelistMapType,
		MaxSize:      int(maxSize),
	}
	if bits.UintSize == 64 {
		size := mapSize
		o.InitialMmapSize = int(size)
	}
	db, err := openGuarded(path, o)
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, app.Errorf(app.Unavailable, "another process%s holds this data directory; stop it first, or choose another directory", holder(path))
	case err != nil:
		return nil, err
	}
	return db, nil
}

// expectRecords refuses to begin anew where there were records.
func expectRecords(path string) error {
	if _, err := os.Stat(path + markerSuffix); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the database is missing, but %s says that it was here; restore a backup, or remove that file to begin anew", filepath.Base(path)+markerSuffix)
	case err != nil:
		return err
	case info.Size() == 0:
		return fmt.Errorf("the database is empty, but %s says that it was not; restore a backup, or remove both files to begin anew", filepath.Base(path)+markerSuffix)
	}
	return nil
}

// openGuarded turns the ways in which bbolt meets a damaged file (errors,
// panics, reads beyond its end) into an error.
func openGuarded(path string, o *bolt.Options) (db *bolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var file *os.File
	o.OpenFile = func(name string, flag int, mode fs.FileMode) (*os.File, error) {
		file, err = os.OpenFile(name, flag, mode)
		return file, err
	}
	defer func() {
		if v := recover(); v != nil {
			db, err = nil, errors.Join(damaged(fmt.Errorf("%v", v)), file.Close())
		}
	}()
	db, err = bolt.Open(path, 0o600, o)
	switch {
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return nil, damaged(err)
	case err != nil:
		return nil, err
	}
	if err := wholeFile(db, path); err != nil {
		return nil, errors.Join(damaged(err), db.Close())
	}
	return db, nil
}

func damaged(err error) error {
	return fmt.Errorf("the file is damaged or not a database; restore a backup: %w", err)
}

// wholeFile refuses a file that was cut off: reading its missing pages would
// kill the process later.
func wholeFile(db *bolt.DB, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return db.View(func(tx *bolt.Tx) error {
		if tx.Size() > info.Size() {
			return fmt.Errorf("it has %d bytes of %d", info.Size(), tx.Size())
		}
		return nil
	})
}

// settleOnDisk makes sure that what was read so far, perhaps from a cache
// that a crashed process left behind, is on the disk, and leaves the marker.
func settleOnDisk(db *bolt.DB) error {
	path := db.Path()
	if err := db.Sync(); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	marker := path + markerSuffix
	if _, err := os.Stat(marker); err == nil {
		return syncDir(filepath.Dir(path))
	}
	return writeFile(marker, func(f *os.File) error {
		_, err := f.WriteString(markerText)
		return err
	})
}

// writeFile makes a file appear whole or not at all.
func writeFile(path string, write func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// holder names the process that has locked the file, as " NAME (PID)", where
// the system tells.
func holder(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return ""
	}
	// 1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234567 0 EOF
	inode := fmt.Sprintf(":%d", stat.Ino)
	for line := range strings.Lines(string(locks)) {
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || !strings.HasSuffix(f[5], inode) {
			continue
		}
		name, err := os.ReadFile("/proc/" + f[4] + "/comm")
		if err != nil {
			return ""
		}
		return fmt.Sprintf(" %s (process %s)", bytes.TrimSpace(name), f[4])
	}
	return ""
}
