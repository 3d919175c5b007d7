package kv

import (
	"bytes"
	"context"
	"fmt"

	"molrun/app/base/sortid"
)

// Table is a bucket of records by ID with its derived buckets. Open builds missing
// derived buckets. If the definition of a derived bucket's entries changes, the bucket
// needs a new name or a migration that deletes it.
type Table[T any] struct {
	Bucket  string
	Read    func(tx *Tx, id sortid.ID) (*T, error)
	Derived []Derived[T]

	// Parts lists further buckets with parts of the records. Decode returns the record
	// that Read would return, given its values from all the buckets; a missing part is
	// nil. A table with few records needs neither.
	Parts  []string
	Decode func(id sortid.ID, parts [][]byte) (*T, error)

	// CheckRecords, if not nil, checks invariants between the records. It is called like
	// Derived.Check.
	CheckRecords func(found *ProblemList) (record func(id sortid.ID, v *T), end func())
}

// Derived is a bucket derived from the records of a table: an Index, or a sum over
// records.
type Derived[T any] interface {
	Name() string

	// Apply applies a record's change to the bucket; nil means no record.
	Apply(tx *Tx, id sortid.ID, old, now *T) error

	// Check compares the bucket with the records. The caller passes each record to
	// record, then calls end.
	Check(tx *Tx, found *ProblemList) (record func(id sortid.ID, v *T), end func(context.Context) error)
}

// Put stores a record in place of old, which is nil if there was none. now is the record
// that Read decodes from value.
func (table *Table[T]) Put(t *Tx, id sortid.ID, value []byte, old, now *T) error {
	if err := t.Replace(table.Bucket, id[:], value); err != nil {
		return err
	}
	if idLess(t.highest, id) {
		t.highest = id
	}
	return table.follow(t, id, old, now)
}

// Delete removes a record.
func (table *Table[T]) Delete(t *Tx, id sortid.ID, old *T) error {
	if err := t.Delete(table.Bucket, id[:]); err != nil {
		return err
	}
	return table.follow(t, id, old, nil)
}

func (table *Table[T]) follow(t *Tx, id sortid.ID, old, now *T) error {
	for _, d := range table.Derived {
		if err := d.Apply(t, id, old, now); err != nil {
			return err
		}
	}
	return nil
}

// Index derives entries from each record. Every key ends with the record's ID,
// so no two records share one.
type Index[T any] struct {
	Bucket  string
	Entries func(id sortid.ID, v *T) []Entry
}

// Entry is an entry of an index. Its value, usually empty, saves reading the record when
// a walk visits every entry.
type Entry struct {
	Key   Key
	Value []byte
}

// Name returns the name of the bucket.
func (ix Index[T]) Name() string { return ix.Bucket }

// Apply deletes the entries of old and puts those of now.
func (ix Index[T]) Apply(t *Tx, id sortid.ID, old, now *T) error {
	var before, after []Entry
	if old != nil {
		before = ix.Entries(id, old)
	}
	if now != nil {
		after = ix.Entries(id, now)
	}
	for _, e := range before {
		if findEntry(after, e.Key) == nil {
			if err := t.Delete(ix.Bucket, e.Key); err != nil {
				return err
			}
		}
	}
	for _, e := range after {
		if same := findEntry(before, e.Key); same != nil && bytes.Equal(same.Value, e.Value) {
			continue
		}
		if err := t.Put(ix.Bucket, e.Key, e.Value); err != nil {
			return err
		}
	}
	return nil
}

func findEntry(entries []Entry, k Key) *Entry {
	for i := range entries {
		if bytes.Equal(entries[i].Key, k) {
			return &entries[i]
		}
	}
	return nil
}

func (table *Table[T]) name() string { return table.Bucket }

func (table *Table[T]) derivedNames() (names []string) {
	for _, d := range table.Derived {
		names = append(names, d.Name())
	}
	return names
}

func (table *Table[T]) repairedBuckets() (all []repairer) {
	for _, d := range table.Derived {
		if m, ok := d.(repairer); ok {
			all = append(all, m)
		}
	}
	return all
}

// build adds the entries of a limited number of records to a derived bucket, starting at
// from. It returns the key at which to continue, or nil at the end.
func (table *Table[T]) build(t *Tx, name string, from []byte, records int) ([]byte, error) {
	var derived Derived[T]
	for _, d := range table.Derived {
		if d.Name() == name {
			derived = d
		}
	}
	w := t.Walk(table.Bucket)
	for w.Seek(from); w.Key != nil; w.Next() {
		if records--; records < 0 {
			return bytes.Clone(w.Key), nil
		}
		id, err := w.Key.LastID()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", table.Bucket, err)
		}
		v, err := table.Read(t, id)
		if err != nil {
			return nil, err
		}
		if err := derived.Apply(t, id, nil, v); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// checkRecords reads all records and compares the derived buckets with them.
func (table *Table[T]) checkRecords(ctx context.Context, t *Tx, found *ProblemList) error {
	if !t.Has(table.Bucket) {
		return nil // added by a newer version
	}
	c := checking[T]{}
	sums := map[string]*indexSum[T]{}
	for _, d := range table.Derived {
		switch ix, ok := d.(Index[T]); {
		case !t.Has(d.Name()): // added by a newer version
		case ok:
			sums[ix.Bucket] = &indexSum[T]{index: ix}
			c.records = append(c.records, sums[ix.Bucket].addRecord)
		default:
			c.addCheck(d.Check(t, found))
		}
	}
	if table.CheckRecords != nil {
		record, end := table.CheckRecords(found)
		c.addCheck(record, func(context.Context) error { end(); return nil })
	}
	bad := func(k Key) { found.Addf("%s: the key %x is not an ID", table.Bucket, []byte(k)) }
	unreadable := func(id sortid.ID, err error) { found.Addf("%s: %s: %v", table.Bucket, id, err) }
	if err := c.scan(ctx, t, table, bad, unreadable); err != nil {
		return err
	}
	return table.checkIndexes(ctx, t, sums, found)
}

// checkIndexes looks up every entry of the indexes that do not agree with the records,
// and reports the differences.
func (table *Table[T]) checkIndexes(ctx context.Context, t *Tx, sums map[string]*indexSum[T], found *ProblemList) error {
	c := checking[T]{}
	for _, d := range table.Derived {
		if sum := sums[d.Name()]; sum != nil {
			if same, err := sum.agrees(ctx, t); err != nil {
				return err
			} else if !same {
				c.addCheck(d.Check(t, found))
			}
		}
	}
	if len(c.records) == 0 {
		return nil
	}
	return c.scan(ctx, t, table, func(Key) {}, func(sortid.ID, error) {})
}

// checking is a set of checks that receive each record.
type checking[T any] struct {
	records []func(sortid.ID, *T)
	ends    []func(context.Context) error
}

func (c *checking[T]) addCheck(record func(sortid.ID, *T), end func(context.Context) error) {
	c.records, c.ends = append(c.records, record), append(c.ends, end)
}

func (c *checking[T]) scan(ctx context.Context, t *Tx, table *Table[T], bad func(Key), unreadable func(sortid.ID, error)) error {
	err := table.Scan(ctx, t, bad, func(id sortid.ID, v *T, err error) bool {
		if err != nil {
			unreadable(id, err)
			return true
		}
		for _, record := range c.records {
			record(id, v)
		}
		return true
	})
	for _, end := range c.ends {
		if err == nil {
			err = end(ctx)
		}
	}
	return err
}

// Check reports missing entries by record, and surplus ones by their number.
func (ix Index[T]) Check(t *Tx, found *ProblemList) (record func(sortid.ID, *T), end func(context.Context) error) {
	b, want := t.Bucket(ix.Bucket), 0
	record = func(id sortid.ID, v *T) {
		for _, e := range ix.Entries(id, v) {
			want++
			value := b.Get(e.Key)
			switch {
			case value == nil:
				found.AddDerivablef("%s is missing an entry for %s", ix.Bucket, id)
			case !bytes.Equal(value, e.Value):
				found.AddDerivablef("%s has a wrong value for %s", ix.Bucket, id)
			}
		}
	}
	end = func(context.Context) error {
		if have := b.Stats().KeyN; have != want {
			found.AddDerivablef("%s has %d entries, its records have %d", ix.Bucket, have, want)
		}
		return nil
	}
	return record, end
}
