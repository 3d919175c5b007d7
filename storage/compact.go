package storage

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"molrun/app/fault"
)

// Compacted tells the size of the file before and after.
type Compacted struct {
	Before int64 `json:"bytesBefore"`
	After  int64 `json:"bytesAfter"`
}

// compactBytes is how much one transaction of compacting copies.
const compactBytes = 8 << 20

// Compact writes the database at path anew, without the space that deletions
// have left in it. No process may hold it. The old file stays until the new
// one is on the disk and was found to be sound and equal; a crash leaves
// either the one or the other.
func Compact(ctx context.Context, path string, o Options) (c Compacted, err error) {
	db, err := openFile(path, o)
	if err != nil {
		return c, fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := expectSound(ctx, db); err != nil {
		return c, err
	}
	if err := removeLeftovers(path); err != nil {
		return c, err
	}
	small := path + ".compact.tmp"
	if err := compactInto(ctx, small, db); err != nil {
		err = errors.Join(err, os.Remove(small))
		if isFull(err) {
			return c, &fault.Error{Code: fault.StorageFull, Message: "the disk has no room for a second copy of the database; nothing was changed", Err: err}
		}
		return c, fmt.Errorf("compact: %w", err)
	}
	c.Before, c.After = sizeOf(path), sizeOf(small)
	if err := os.Rename(small, path); err != nil {
		return c, fmt.Errorf("compact: %w", err)
	}
	return c, syncDir(filepath.Dir(path))
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// expectSound refuses a database whose pages are damaged or which is not ours:
// a copy would hide what is wrong with it.
func expectSound(ctx context.Context, db *bolt.DB) error {
	var found problems
	r := &ReadOnly{db}
	err := guarded(func() error { return expectSchema(db) })
	if err == nil {
		err = r.checkPages(ctx, &found)
	}
	if err != nil {
		return err
	}
	return found.err()
}

// compactInto makes the new file and reads it again before it is trusted.
func compactInto(ctx context.Context, path string, src *bolt.DB) (err error) {
	dst, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout: lockWait, FreelistType: bolt.FreelistMapType, NoSync: true,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	if err := bolt.Compact(dst, src, compactBytes); err != nil {
		return err
	}
	if err := equal(ctx, dst, src); err != nil {
		return err
	}
	err = dst.Update(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte(bucketMeta)).Put([]byte(metaLineage), []byte(rand.Text()))
	})
	if err == nil {
		err = dst.Sync()
	}
	if err == nil {
		err = expectSound(ctx, dst)
	}
	return err
}

// equal compares all that two databases hold.
func equal(ctx context.Context, a, b *bolt.DB) error {
	return a.View(func(at *bolt.Tx) error {
		return b.View(func(bt *bolt.Tx) error {
			return equalBuckets(ctx, at, bt)
		})
	})
}

func equalBuckets(ctx context.Context, at, bt *bolt.Tx) error {
	ac, bc := at.Cursor(), bt.Cursor()
	a, _ := ac.First()
	b, _ := bc.First()
	for ; a != nil || b != nil; a, b = keyOf(ac.Next()), keyOf(bc.Next()) {
		if !bytes.Equal(a, b) {
			return fmt.Errorf("the copy differs from the database: it has %q in the place of %q", a, b)
		}
		if err := equalBucket(ctx, at.Bucket(a), bt.Bucket(b)); err != nil {
			return fmt.Errorf("the copy differs from the database in %s: %w", a, err)
		}
	}
	return nil
}

func keyOf(k, _ []byte) []byte { return k }

func equalBucket(ctx context.Context, a, b *bolt.Bucket) error {
	ac, bc := a.Cursor(), b.Cursor()
	ak, av := ac.First()
	bk, bv := bc.First()
	for ak != nil || bk != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !bytes.Equal(ak, bk) || !bytes.Equal(av, bv) {
			return fmt.Errorf("%x in the place of %x", ak, bk)
		}
		ak, av = ac.Next()
		bk, bv = bc.Next()
	}
	return nil
}
