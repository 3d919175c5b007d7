package kv

import (
	"context"
	"slices"

	bolt "go.etcd.io/bbolt"

	"molrun/storage/kv/boltfile"
)

// Meta is the bucket that describes the database. Callers may keep values
// there too.
const Meta = boltfile.Meta

// Schema says what a database holds.
type Schema struct {
	Buckets []string // of records
	Tables  []AnyTable
	Journal *Journal // nil: none

	// Migrations lead from schema 1 to the current one, a step each. Steps are
	// only ever added. A new field of a record needs none.
	Migrations []Migration

	// Check reports disagreements that the tables can't find by themselves.
	Check func(ctx context.Context, tx *Tx, found *Findings) error

	// Repair derives again what Check reports as derivable.
	Repair func(ctx context.Context, tx *Tx) error
}

// Migration turns the database of one schema into that of the next. It creates the
// buckets that are new in Schema.Buckets. It may delete the bucket of an index: Open
// builds it again.
type Migration func(*bolt.Tx) error

// AnyTable is a Table of any record type.
type AnyTable interface {
	name() string
	derivedNames() []string
	repairedBuckets() []repairer
	build(tx *Tx, name string, from []byte, records int) (next []byte, err error)
	checkRecords(ctx context.Context, tx *Tx, found *Findings) error
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

// derived returns the buckets that follow from records.
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

// repairer is a derived bucket that can't be rebuilt from its records: it holds more.
type repairer interface {
	Name() string
	Repair(t *Tx) error
}

// fillPercent says how full bbolt leaves a page when it splits it. Records are only added
// at the end of their bucket, and each listing of an index grows at its own end, where the
// next listing begins, so most of what a split leaves behind gets no further entries: with
// half-full pages, bbolt's default, the file is a third larger. But records grow after
// that, as a job's does when it runs and ends. On a page without room for it they would
// need a second one.
const fillPercent = 0.8
