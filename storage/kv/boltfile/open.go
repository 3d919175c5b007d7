// Package boltfile opens, copies and compacts the file of a bbolt database and maintains
// the files next to it. It rejects files that are unsafe to write: locked, damaged,
// truncated, replaced, or on a network file system. The only bucket it uses is meta.
package boltfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"molrun/app/base/fault"
)

const (
	lockWait = 2 * time.Second

	// mapSize is address space, not memory or disk. When a file outgrows its map, the
	// remapping waits for all readers, and new readers wait for the remapping.
	mapSize = int64(4) << 30
)

// Options are the limits of a database file.
type Options struct {
	MaxSize       int64 // in bytes; 0 means no limit
	AnyFileSystem bool  // open the file even where commits could be lost
}

// Open opens the database file at path for writing, or creates it. It rejects unsafe file
// systems, damaged files, and a database other than the one that the marker expects.
func Open(path string, o Options) (*bolt.DB, error) {
	if !o.AnyFileSystem {
		if err := RefuseFileSystem(filepath.Dir(path)); err != nil {
			return nil, err
		}
	}
	id, err := expectedID(path)
	if err != nil {
		return nil, err
	}
	options := &bolt.Options{Timeout: lockWait, FreelistType: bolt.FreelistMapType, MaxSize: int(o.MaxSize)}
	if bits.UintSize == 64 {
		size := mapSize
		options.InitialMmapSize = int(size)
	}
	return openExpected(path, id, options)
}

// OpenReadOnly opens an existing database file. Until it is closed, other processes can
// read the file but not open it for writing.
func OpenReadOnly(path string) (*bolt.DB, error) {
	id, err := expectedID(path)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.Size() == 0 {
		return nil, Damaged(errors.New("it is empty"))
	}
	return openExpected(path, id, &bolt.Options{
		Timeout: lockWait, ReadOnly: true, PreLoadFreelist: true, FreelistType: bolt.FreelistMapType,
	})
}

func openExpected(path, id string, o *bolt.Options) (*bolt.DB, error) {
	db, err := openGuarded(path, o)
	if errors.Is(err, berrors.ErrTimeout) {
		holder, _ := Holder(path)
		return nil, fault.Errorf(fault.Unavailable, "%s is using this data directory; stop it first, or choose another directory", holder)
	}
	if err != nil {
		return nil, err
	}
	if err := Guard(func() error { return expectID(db, id) }); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// openGuarded opens the file. On a damaged file, bbolt can fail, panic or read past the
// end. In each case openGuarded returns an error.
func openGuarded(path string, o *bolt.Options) (db *bolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var file *os.File
	o.OpenFile = func(name string, flag int, mode fs.FileMode) (*os.File, error) {
		file, err = os.OpenFile(name, flag, mode)
		return file, err
	}
	defer func() {
		if v := recover(); v != nil {
			db, err = nil, errors.Join(Damaged(fmt.Errorf("%v", v)), file.Close())
		}
	}()
	db, err = bolt.Open(path, 0o600, o)
	switch {
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return nil, Damaged(err)
	case err != nil:
		return nil, err
	}
	if err := expectCurrent(file, path); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := expectWhole(db, file); err != nil {
		return nil, errors.Join(Damaged(err), db.Close())
	}
	if err := expectDirectory(db, file); err != nil {
		return nil, errors.Join(Damaged(err), db.Close())
	}
	return db, nil
}

// expectCurrent rejects a file that another process replaced, for example by compaction,
// while this process waited for its lock: writes to it would be lost.
func expectCurrent(file *os.File, path string) error {
	current, err := os.Stat(path)
	if err != nil {
		return err
	}
	if opened, err := file.Stat(); err != nil || !os.SameFile(current, opened) {
		return errors.Join(fault.Errorf(fault.Unavailable, "the database was replaced while it was opened; try again"), err)
	}
	return nil
}

// expectWhole rejects a truncated file: reading a missing page would later crash the
// process.
func expectWhole(db *bolt.DB, file *os.File) error {
	info, err := file.Stat()
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
