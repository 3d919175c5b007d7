package kv

import (
	"context"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"molrun/storage/kv/boltfile"
)

// ReadOnly is a database without writers: a snapshot, or the database of a stopped
// service. The files next to the database are not written either.
type ReadOnly struct {
	file   *bolt.DB
	schema *Schema
}

// OpenReadOnly opens the database at path. Other processes can read it at the same time,
// but a service cannot start on it.
func OpenReadOnly(path string, s *Schema) (*ReadOnly, error) {
	file, err := boltfile.OpenReadOnly(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := boltfile.Guard(func() error { return expectVersion(file, s) }); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), file.Close())
	}
	return &ReadOnly{file, s}, nil
}

// Close releases the file.
func (r *ReadOnly) Close() error { return r.file.Close() }

// View runs fn in a read transaction. It returns damage that fn encounters as an error.
func (r *ReadOnly) View(fn func(*Tx) error) error {
	return boltfile.Guard(func() error {
		b, err := r.file.Begin(false)
		if err != nil {
			return err
		}
		defer func() { _ = b.Rollback() }() // cannot fail for a read transaction
		t := &Tx{bolt: b, schema: r.schema}
		defer func() { t.bolt = nil }()
		return fn(t)
	})
}

// CopyTo atomically writes the database to a new file.
func (r *ReadOnly) CopyTo(ctx context.Context, path string) error {
	if err := boltfile.CopyTo(ctx, r.file, path); err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	return nil
}

// Info describes a database.
type Info struct {
	ID     string // shared by all copies
	Schema int
	Commit int64  // number of the last commit
	Lost   string // description of the commits that the database has lost
}

// Info returns the description of this database.
func (r *ReadOnly) Info() (info Info, err error) {
	var identity boltfile.Identity
	err = r.View(func(t *Tx) error {
		identity = boltfile.IdentityOf(t.bolt)
		info = Info{ID: identity.ID, Commit: int64(t.bolt.ID())}
		info.Schema, err = storedSchema(t)
		return err
	})
	if err != nil {
		return info, err
	}
	if beside, err := boltfile.ReadCommits(r.file.Path()); err == nil {
		info.Lost = beside.Lost(identity.Lineage, info.Commit)
	}
	return info, nil
}

// Report is the result of a check.
type Report struct {
	ProblemList
	Entries map[string]int // number of entries in each bucket that is not derived

	// Readable reports whether the records can be read, that is, whether pages and
	// buckets are intact.
	Readable bool
}

// Check reads the whole database and reports every inconsistency, like DB.Check.
func (r *ReadOnly) Check(ctx context.Context) (*Report, error) {
	if err := boltfile.ReadThrough(ctx, r.file); err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	report := &Report{Entries: map[string]int{}}
	err := boltfile.CheckPages(ctx, r.file, func(problem error) { report.Addf("%v", problem) })
	if err == nil && report.Count == 0 {
		err = r.View(func(t *Tx) error {
			if checkBuckets(t, &report.ProblemList); report.Count > 0 {
				return nil
			}
			report.Readable = true
			for _, name := range r.schema.Buckets {
				if t.Has(name) {
					report.Entries[name] = t.Bucket(name).Stats().KeyN
				}
			}
			highWaterMark, err := readHighWaterMark(t.bolt)
			if err != nil {
				return err
			}
			return checkRecords(ctx, t, highWaterMark, &report.ProblemList)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	return report, nil
}
