package kv

import (
	"context"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"molrun/storage/kv/boltfile"
)

// ReadOnly is a database without writers: a snapshot, or the database of
// a stopped service. It writes no file beside the database either.
type ReadOnly struct {
	file   *bolt.DB
	schema *Schema
}

// OpenReadOnly opens the database at path. Others may read it meanwhile; a
// service can't start on it.
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

// View runs fn in a read transaction. It returns damage that it meets as an
// error.
func (r *ReadOnly) View(fn func(*Tx) error) error {
	return boltfile.Guard(func() error {
		b, err := r.file.Begin(false)
		if err != nil {
			return err
		}
		defer func() { _ = b.Rollback() }() // can't fail for a read transaction
		t := &Tx{bolt: b, schema: r.schema}
		defer func() { t.bolt = nil }()
		return fn(t)
	})
}

// CopyTo writes the database to a new file, whole or not at all.
func (r *ReadOnly) CopyTo(ctx context.Context, path string) error {
	if err := boltfile.CopyTo(ctx, r.file, path); err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	return nil
}

// Info describes a database.
type Info struct {
	ID     string // the same in all copies
	Schema int
	Commit int64  // number of the last commit
	Lost   string // the commits that the database has lost, in words
}

// Info returns what database this is.
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
	Findings
	Entries map[string]int // in each bucket that does not follow from others

	// Readable says that the records can be read: pages and buckets are sound.
	Readable bool
}

// Check reads the whole database and reports every disagreement, like DB.Check.
func (r *ReadOnly) Check(ctx context.Context) (*Report, error) {
	if err := boltfile.ReadThrough(ctx, r.file); err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	report := &Report{Entries: map[string]int{}}
	err := boltfile.CheckPages(ctx, r.file, func(problem error) { report.Addf("%v", problem) })
	if err == nil && report.Count == 0 {
		err = r.View(func(t *Tx) error {
			if checkBuckets(t, &report.Findings); report.Count > 0 {
				return nil
			}
			report.Readable = true
			for _, name := range r.schema.Buckets {
				if t.Has(name) {
					report.Entries[name] = t.Bucket(name).Stats().KeyN
				}
			}
			floor, err := readFloor(t.bolt)
			if err != nil {
				return err
			}
			return checkRecords(ctx, t, floor, &report.Findings)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	return report, nil
}
