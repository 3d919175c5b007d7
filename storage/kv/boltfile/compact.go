package boltfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"molrun/app/base/fault"
)

// Compacted is the size of a file before and after compaction.
type Compacted struct {
	Before int64 `json:"bytesBefore"`
	After  int64 `json:"bytesAfter"`
}

// copyBytes limits the size of one transaction of the copy.
const copyBytes = 8 << 20

// Compact replaces the file of an open database with a copy without free pages. The copy
// is compared with the database and passed to check before the rename; a crash leaves one
// file or the other. The caller must close the database afterwards.
func Compact(ctx context.Context, db *bolt.DB, check func(context.Context, *bolt.DB) error) (c Compacted, err error) {
	path := db.Path()
	if err := RemoveLeftovers(path); err != nil {
		return c, err
	}
	compacted := path + ".compact" + temporarySuffix
	if err := compactInto(ctx, compacted, db, check); err != nil {
		err = errors.Join(err, os.Remove(compacted))
		if IsFull(err) {
			return c, &fault.Error{Code: fault.StorageFull, Message: "the disk has no space for a second copy of the database; nothing was changed", Err: err}
		}
		return c, fmt.Errorf("compact: %w", err)
	}
	c.Before, c.After = sizeOf(path), sizeOf(compacted)
	if err := os.Rename(compacted, path); err != nil {
		return c, fmt.Errorf("compact: %w", err)
	}
	return c, SyncDir(filepath.Dir(path))
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func compactInto(ctx context.Context, path string, src *bolt.DB, check func(context.Context, *bolt.DB) error) (err error) {
	dst, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout: lockWait, FreelistType: bolt.FreelistMapType, NoSync: true,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	if err := bolt.Compact(dst, src, copyBytes); err != nil {
		return err
	}
	err = dst.View(func(copied *bolt.Tx) error {
		return src.View(func(original *bolt.Tx) error { return compareBuckets(ctx, copied, original) })
	})
	if err != nil {
		return fmt.Errorf("the copy differs from the database: %w", err)
	}
	if err := dst.Update(RenewLineage); err != nil {
		return err
	}
	if err := dst.Sync(); err != nil {
		return err
	}
	return check(ctx, dst)
}

func compareBuckets(ctx context.Context, a, b *bolt.Tx) error {
	ac, bc := a.Cursor(), b.Cursor()
	an, _ := ac.First()
	bn, _ := bc.First()
	for an != nil || bn != nil {
		if !bytes.Equal(an, bn) {
			return fmt.Errorf("bucket %q instead of %q", an, bn)
		}
		if err := compareEntries(ctx, a.Bucket(an), b.Bucket(bn)); err != nil {
			return fmt.Errorf("bucket %s: %w", an, err)
		}
		an, _ = ac.Next()
		bn, _ = bc.Next()
	}
	return nil
}

func compareEntries(ctx context.Context, a, b *bolt.Bucket) error {
	ac, bc := a.Cursor(), b.Cursor()
	ak, av := ac.First()
	bk, bv := bc.First()
	for ak != nil || bk != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !bytes.Equal(ak, bk) || !bytes.Equal(av, bv) {
			return fmt.Errorf("entry %x instead of %x", ak, bk)
		}
		ak, av = ac.Next()
		bk, bv = bc.Next()
	}
	return nil
}
