package kv

import (
	"context"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"molrun/app/base/fault"
	"molrun/storage/kv/boltfile"
)

// Repair rebuilds the derived data of the database at path: indexes, sums, the high-water
// mark, and anything that the schema can repair. It changes nothing else in records and
// rejects damaged pages. It keeps a copy of the original database and returns a check of
// the repaired one.
func Repair(ctx context.Context, path string, s *Schema, o Options) (report *Report, err error) {
	file, err := openClosed(path, s, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	r := &ReadOnly{file, s}
	before, err := r.Check(ctx)
	if err != nil || before.Count == 0 {
		return before, err
	}
	switch {
	case !before.Readable && before.Derivable < before.Count:
		return nil, fault.Errorf(fault.Internal, "the database damage cannot be repaired (%s); restore a backup", before.Problems[0].Text)
	case before.Derivable == 0:
		return before, nil
	}
	if err := boltfile.CopyTo(ctx, file, path+".before-repair"); err != nil {
		return nil, fmt.Errorf("copy the database before it is repaired: %w", err)
	}
	if err := boltfile.Guard(func() error { return derive(ctx, file, s) }); err != nil {
		return nil, fmt.Errorf("repair: %w", err)
	}
	return r.Check(ctx)
}

// Compact rewrites the database at path without free pages. It rejects a damaged
// database, since a copy would hide the damage.
func Compact(ctx context.Context, path string, s *Schema, o Options) (c boltfile.Compacted, err error) {
	file, err := openClosed(path, s, o)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	sound := func(ctx context.Context, db *bolt.DB) error {
		var found ProblemList
		if err := boltfile.CheckPages(ctx, db, func(problem error) { found.Addf("%v", problem) }); err != nil {
			return err
		}
		return found.Err()
	}
	if err := sound(ctx, file); err != nil {
		return c, err
	}
	return boltfile.Compact(ctx, file, sound)
}

// openClosed opens, without preparing it, a database that no other process has open.
func openClosed(path string, s *Schema, o Options) (*bolt.DB, error) {
	file, err := boltfile.Open(path, boltfile.Options{MaxSize: o.MaxSize, AnyFileSystem: o.AnyFileSystem})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := boltfile.Guard(func() error { return expectVersion(file, s) }); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// derive rebuilds all derived data. If it is interrupted, the next Open builds the
// missing indexes.
func derive(ctx context.Context, file *bolt.DB, s *Schema) error {
	if err := rebuild(file, s, s.rebuildable(), nil); err != nil {
		return err
	}
	return file.Update(func(b *bolt.Tx) error {
		t := &Tx{bolt: b, schema: s}
		err := errors.Join(repairHighWaterMark(t), repairJournal(t))
		for _, m := range s.repairedBuckets() {
			err = errors.Join(err, m.Repair(t))
		}
		return errors.Join(err, s.Repair(ctx, t))
	})
}
