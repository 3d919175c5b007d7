package kv

import (
	"context"
	"slices"

	bolt "go.etcd.io/bbolt"

	"molrun/storage/kv/boltfile"
)

// Meta is the name of the bucket that describes the database. Callers can store values in
// it too.
const Meta = boltfile.Meta

// Schema defines the content of a database.
type Schema struct {
	Buckets []string // buckets of records
	Tables  []AnyTable
	Journal *Journal // nil means no journal

	// Migrations lead from schema 1 to the current one, one step each. Steps are only
	// ever added. A new field of a record needs none.
	Migrations []Migration

	// Check reports inconsistencies that the tables cannot detect on their own.
	Check func(ctx context.Context, tx *Tx, found *ProblemList) error

	// Repair rebuilds the data that Check reports as derivable.
	Repair func(ctx context.Context, tx *Tx) error
}

// Migration converts a database from one schema to the next. It creates the buckets that
// are new in Schema.Buckets. It can delete the bucket of an index, which Open then
// rebuilds.
type Migration func(*bolt.Tx) error

// AnyTable is a Table of any record type.
type AnyTable interface {
	name() string
	derivedNames() []string
	repairedBuckets() []repairer
	build(tx *Tx, name string, from []byte, records int) (next []byte, err error)
	checkRecords(ctx context.Context, tx *Tx, found *ProblemList) error
}

// version returns the current schema number.
func (s *Schema) version() int { return 1 + len(s.Migrations) }

// buckets returns the names of all buckets.
func (s *Schema) buckets() []string {
	all := slices.Concat([]string{Meta}, s.Buckets, s.derived())
	if s.Journal != nil {
		all = append(all, s.Journal.Bucket)
	}
	return all
}

// derived returns the names of the derived buckets.
func (s *Schema) derived() (names []string) {
	for _, table := range s.Tables {
		names = append(names, table.derivedNames()...)
	}
	return names
}

// rebuildable returns the derived buckets that a repair rebuilds.
func (s *Schema) rebuildable() []string {
	names := s.derived()
	for _, m := range s.repairedBuckets() {
		names = slices.DeleteFunc(names, func(name string) bool { return name == m.Name() })
	}
	return names
}

// repairedBuckets returns the derived buckets that a repair corrects in place.
func (s *Schema) repairedBuckets() (all []repairer) {
	for _, table := range s.Tables {
		all = append(all, table.repairedBuckets()...)
	}
	return all
}

// repairer is a derived bucket that cannot be rebuilt from its records because it holds
// more than they do.
type repairer interface {
	Name() string
	Repair(t *Tx) error
}

// fillPercent is how full bbolt leaves a page when it splits it. Records are only added
// at the end of their bucket, and each listing of an index grows at its end, just before
// the next listing, so most pages get no further entries after a split: with bbolt's
// default of half-full pages, the file is a third larger. But records grow later, as a
// job's does when it runs and finishes. On a page without free space they would need a
// second page.
const fillPercent = 0.8
