// Package kv stores tables of records in one bbolt file: group commit, buckets derived
// from records (indexes and sums), migrations, checks and repair. It uses the IDs of
// package app but knows nothing about jobs: a Schema defines the content of a database.
package kv

import (
	"context"
	"errors"
	"fmt"
	"sync"

	bolt "go.etcd.io/bbolt"

	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/storage/kv/boltfile"
)

// Options are the settings of a database.
type Options struct {
	// Fatal is called once, when a failed commit leaves the content of the disk unknown,
	// the database turns out to be damaged, or its file is no longer at its path
	// (boltfile.ErrGone). It must end the process; until then every call fails. It must
	// not wait for the database.
	Fatal func(error)

	// MaxSize limits the file size in bytes; 0 means no limit. A commit that does not fit
	// fails with STORAGE_FULL.
	MaxSize int64

	// AnyFileSystem allows file systems on which commits can be lost.
	AnyFileSystem bool

	// Warn receives warnings for the operator about a working database, such as lost
	// commits, once each. It can be nil.
	Warn func(string)

	// Announce receives the names of steps of Open that can take minutes with a large
	// database, before they start. It can be nil.
	Announce func(string)
}

// DB is an open database. No other process can open its file.
type DB struct {
	file    *bolt.DB
	schema  *Schema
	health  *health
	writer  *writer
	commits *boltfile.Counter
	place   boltfile.Location

	closing  sync.Once
	closeErr error
}

// Open opens the database at path or creates it, migrates it to the current schema and
// builds missing indexes.
func Open(path string, s *Schema, o Options) (*DB, error) {
	file, err := boltfile.Open(path, boltfile.Options{MaxSize: o.MaxSize, AnyFileSystem: o.AnyFileSystem})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if o.Announce == nil {
		o.Announce = func(string) {}
	}
	var highWaterMark sortid.ID
	var commits *boltfile.Counter
	var place boltfile.Location
	err = boltfile.Guard(func() (err error) {
		if highWaterMark, err = prepare(file, s, o.Announce); err != nil {
			return err
		}
		if err := boltfile.Confirm(file); err != nil {
			return err
		}
		if commits, err = boltfile.NewCounter(file, o.Warn); err != nil {
			return err
		}
		place, err = boltfile.PlaceOf(path)
		return err
	})
	if err == nil {
		err = boltfile.RemoveLeftovers(path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), file.Close())
	}
	h := &health{fatal: o.Fatal}
	db := &DB{file: file, schema: s, health: h, commits: commits, place: place, writer: newWriter(file, s, h, commits, place, highWaterMark)}
	go db.writer.commitGroups()
	go commits.Run(db.writer.ended)
	return db, nil
}

// Close lets the writer finish the queued calls, waits for open transactions and releases
// the file. Later calls fail.
func (db *DB) Close() error {
	db.closing.Do(func() {
		close(db.writer.stop)
		<-db.writer.ended
		<-db.commits.Done()
		if err := db.file.Close(); err != nil {
			db.closeErr = fmt.Errorf("close the database: %w", err)
		}
	})
	return db.closeErr
}

// Path returns the path of the file.
func (db *DB) Path() string { return db.file.Path() }

// CheckLocation fails the database if its file is no longer at its path. Every commit
// makes the same check, so calling it matters only while nothing is written.
func (db *DB) CheckLocation() error {
	if err := db.place.Check(); err != nil {
		return db.health.fail(err)
	}
	return db.health.err()
}

// HighWaterMark returns the highest ID ever stored, even if its record has been deleted.
func (db *DB) HighWaterMark() sortid.ID { return *db.writer.highWaterMark.Load() }

// OnCommit calls notify after each commit, before the calls of Update return. notify must
// neither block nor use the database.
func (db *DB) OnCommit(notify func(Commit)) { db.writer.watch.Store(&notify) }

// Size is the size of a database. Free pages are reused.
type Size struct {
	Bytes, FreeBytes int64
	FreePages        int
}

// Size returns the size of the database.
func (db *DB) Size(ctx context.Context) (size Size, err error) {
	err = db.View(ctx, func(t *Tx) error {
		size.Bytes = t.bolt.Size()
		return nil
	})
	stats := db.file.Stats()
	size.FreePages = stats.FreePageN + stats.PendingPageN
	size.FreeBytes = int64(size.FreePages) * int64(db.file.Info().PageSize)
	return size, err
}

// Snapshot copies the database to a temporary file next to it, without blocking writers,
// and returns the file's path. The caller removes the file; after a crash the next Open
// does.
func (db *DB) Snapshot(ctx context.Context) (path string, err error) {
	if err := db.ready(ctx); err != nil {
		return "", err
	}
	path, err = boltfile.Snapshot(ctx, db.file)
	switch {
	case err == nil:
		return path, nil
	case boltfile.IsFull(err):
		return "", &fault.Error{Code: fault.StorageFull, Message: "the disk has no space for a snapshot of the database; free some and try again", Err: err}
	}
	return "", fmt.Errorf("make a snapshot: %w", err)
}

// ready returns an error if no transaction can begin.
func (db *DB) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("wait for the store: %w", context.Cause(ctx))
	}
	return db.health.err()
}
