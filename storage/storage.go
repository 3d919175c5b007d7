// Package storage keeps the records of package app in one bbolt file.
//
// Next to the database, jobs.db, an operator finds
//
//	jobs.db.initialised    names the database that must be here: with it, a
//	                       missing, empty or foreign database is an error
//	                       rather than a fresh start
//	jobs.db.commits        the number of the last commit, to detect lost commits
//	                       on start
//	jobs.db.before-N       a copy from before the migration to schema N; delete it
//	                       once the upgrade has proved successful
//	jobs.db.before-repair  a copy from before molrun check --repair changed it
//	jobs.db.*.tmp          a file being written; removed on the next start
//
// The file must be on a local file system and must not be copied while a process has it
// open. A record is JSON keyed by its ID. Package kv is the storage engine; this package
// defines the records, their indexes and their queries.
package storage

import (
	"context"

	"molrun/app"
	"molrun/storage/kv"
	"molrun/storage/kv/boltfile"
)

// Options are the settings of a store.
type Options = kv.Options

// Store is the database of a data directory. No other process can open it.
type Store struct{ *kv.DB }

var _ app.Store = (*Store)(nil)

// Open opens the database at path or creates it, migrates it to the current
// schema and builds missing indexes.
func Open(path string, o Options) (*Store, error) {
	db, err := kv.Open(path, schema, o)
	if err != nil {
		return nil, err
	}
	return &Store{db}, nil
}

// View runs fn on one consistent state, as kv.DB.View does.
func (s *Store) View(ctx context.Context, fn func(app.Tx) error) error {
	return s.DB.View(ctx, func(t *kv.Tx) error { return fn(newTx(t)) })
}

// Update runs fn and commits its changes, as kv.DB.Update does.
func (s *Store) Update(ctx context.Context, fn func(app.Tx) error) error {
	return s.DB.Update(ctx, func(t *kv.Tx) error { return fn(newTx(t)) })
}

// Repair rebuilds the derived data of a closed database, as kv.Repair does.
func Repair(ctx context.Context, path string, o Options) (*kv.Report, error) {
	return kv.Repair(ctx, path, schema, o)
}

// Compact rewrites a closed database without free pages, as kv.Compact does.
func Compact(ctx context.Context, path string, o Options) (boltfile.Compacted, error) {
	return kv.Compact(ctx, path, schema, o)
}
