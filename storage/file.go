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
	"strconv"
	"strings"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"molrun/app/fault"
)

const (
	lockWait = 2 * time.Second

	// mapSize is address space, not memory or disk. A file that outgrows its
	// map has to wait for every reader, and every reader for that.
	mapSize = int64(4) << 30
)

// openFile opens the bbolt file, but no other in its place.
func openFile(path string, o Options) (*bolt.DB, error) {
	if !o.AnyFileSystem {
		if err := RefuseFileSystem(filepath.Dir(path)); err != nil {
			return nil, err
		}
	}
	id, err := expectRecords(path)
	if err != nil {
		return nil, err
	}
	options := &bolt.Options{Timeout: lockWait, FreelistType: bolt.FreelistMapType, MaxSize: int(o.MaxSize)}
	if bits.UintSize == 64 {
		size := mapSize
		options.InitialMmapSize = int(size)
	}
	db, err := openLocked(path, options)
	if err != nil {
		return nil, err
	}
	if err := guarded(func() error { return expectDatabase(db, id) }); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// openLocked says who holds the file where somebody does.
func openLocked(path string, o *bolt.Options) (*bolt.DB, error) {
	db, err := openGuarded(path, o)
	if errors.Is(err, berrors.ErrTimeout) {
		holder, _ := Holder(path)
		return nil, fault.Errorf(fault.Unavailable, "%s holds this data directory; stop it first, or choose another directory", holder)
	}
	return db, err
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
	if err := stillThere(file, path); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := wholeFile(db, path); err != nil {
		return nil, errors.Join(damaged(err), db.Close())
	}
	return db, nil
}

// stillThere refuses a file that was replaced, as by compacting, while its
// lock was waited for: what is written to it would be lost.
func stillThere(file *os.File, path string) error {
	there, err := os.Stat(path)
	if err != nil {
		return err
	}
	if opened, err := file.Stat(); err != nil || !os.SameFile(there, opened) {
		return errors.Join(fault.Errorf(fault.Unavailable, "the database was replaced while it was opened; try again"), err)
	}
	return nil
}

// guarded makes an error of the damage that fn meets.
func guarded(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			if !isDamage(v) {
				panic(v)
			}
			err = damaged(fmt.Errorf("%v", v))
		}
	}()
	return fn()
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
	if err := db.Sync(); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return leaveMarker(db)
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

// Process is one of this machine.
type Process struct {
	PID  int
	Name string
}

func (p Process) String() string {
	if p.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("%s (process %d)", p.Name, p.PID)
}

// Holder gives the process that has locked the database at path, false where
// there is none or the system does not tell.
func Holder(path string) (Process, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return Process{}, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Process{}, false
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return Process{}, false
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
			continue
		}
		pid, err := strconv.Atoi(f[4])
		return Process{pid, string(bytes.TrimSpace(name))}, err == nil
	}
	return Process{}, false
}
