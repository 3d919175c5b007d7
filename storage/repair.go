package storage

import (
	"context"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"molrun/app"
	"molrun/app/fault"
)

const beforeRepair = ".before-repair"

// Repair puts right what follows from the records of the database at path:
// indexes, the counts of batches, the floor of IDs. Records themselves it
// leaves alone, and damaged pages it refuses. No process may hold the
// database. A copy of how it was stays beside it, and repaired is how it is
// now.
func Repair(ctx context.Context, path string, o Options) (repaired *Report, err error) {
	db, err := openFile(path, o)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := guarded(func() error { return expectSchema(db) }); err != nil {
		return nil, err
	}
	r := &ReadOnly{db}
	found, err := r.Check(ctx)
	if err != nil || found.Count == 0 {
		return found, err
	}
	switch {
	case !found.Readable && found.Derivable < found.Count:
		return nil, fault.Errorf(fault.Internal, "the database is damaged in a way that can't be repaired (%s); restore a backup", found.Problems[0].Text)
	case found.Derivable == 0:
		return found, nil
	}
	if err := snapshot(ctx, db, path+beforeRepair); err != nil {
		return nil, fmt.Errorf("copy the database before it is repaired: %w", err)
	}
	if err := guarded(func() error { return derive(ctx, db) }); err != nil {
		return nil, fmt.Errorf("repair: %w", err)
	}
	return r.Check(ctx)
}

// derive makes afresh what follows from records. Where it is cut short, the
// next Open builds the indexes that are missing.
func derive(ctx context.Context, db *bolt.DB) error {
	err := db.Update(func(tx *bolt.Tx) error {
		for _, name := range indexNames() {
			if err := dropIndex(tx, name); err != nil {
				return err
			}
		}
		return createBuckets(tx)
	})
	if err == nil {
		err = prepareIndexes(db)
	}
	if err != nil {
		return err
	}
	return db.Update(func(b *bolt.Tx) error {
		t := &tx{bolt: b}
		return errors.Join(deriveFloor(t), deriveCounts(ctx, t))
	})
}

func deriveFloor(t *tx) error {
	for _, bucket := range []string{bucketJobs, bucketUploads} {
		if k, _ := t.bucket(bucket).Cursor().Last(); k != nil {
			id, err := key(k).lastID()
			if err != nil {
				return err
			}
			t.raise(id)
		}
	}
	var floor app.IDBytes
	copy(floor[:], t.bucket(bucketMeta).Get([]byte(metaFloor)))
	if idLess(floor, t.top) {
		return putFloor(t.bolt, t.top)
	}
	return nil
}

// deriveCounts counts the rows of each batch again.
func deriveCounts(ctx context.Context, t *tx) error {
	sums, err := sumBatches(ctx, t, new(problems))
	if err != nil {
		return err
	}
	for _, batch := range sums {
		if batch.parent == nil || *batch.parent.Counts == batch.counts {
			continue
		}
		counts := batch.counts
		batch.parent.Counts = &counts
		if err := t.PutJob(batch.parent); err != nil {
			return err
		}
	}
	return nil
}
