package kv

import (
	"bytes"
	"context"
	"fmt"

	"molrun/app/sortid"
)

// Table is a bucket of records by ID with the buckets that follow from them.
// Open builds a derived bucket that is missing. If the entries of one change,
// it needs another name, or a migration that deletes it.
type Table[T any] struct {
	Bucket  string
	Read    func(tx *Tx, id sortid.ID) (*T, error)
	Derived []Derived[T]
}

// Derived is a bucket that follows from the records of a table: an Index, or
// a sum over records.
type Derived[T any] interface {
	Name() string

	// Follow applies a record's change to the bucket; nil is no record.
	Follow(tx *Tx, id sortid.ID, old, now *T) error

	// Check compares the bucket with the records. The caller passes all of them
	// to record, then calls end.
	Check(tx *Tx, found *Findings) (record func(id sortid.ID, v *T), end func(context.Context) error)
}

// Put stores a record in place of old, nil if there is none. The value is what
// Read decodes as now.
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
		if err := d.Follow(t, id, old, now); err != nil {
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

// Entry is an entry of an index. Its value, mostly empty, saves reading the
// record where a walk visits every entry.
type Entry struct {
	Key   Key
	Value []byte
}

// Name returns the name of the bucket.
func (ix Index[T]) Name() string { return ix.Bucket }

// Follow deletes the entries that old had, and puts those that now has.
func (ix Index[T]) Follow(t *Tx, id sortid.ID, old, now *T) error {
	var before, after []Entry
	if old != nil {
		before = ix.Entries(id, old)
	}
	if now != nil {
		after = ix.Entries(id, now)
	}
	for _, e := range before {
		if find(after, e.Key) == nil {
			if err := t.Delete(ix.Bucket, e.Key); err != nil {
				return err
			}
		}
	}
	for _, e := range after {
		if same := find(before, e.Key); same != nil && bytes.Equal(same.Value, e.Value) {
			continue
		}
		if err := t.Put(ix.Bucket, e.Key, e.Value); err != nil {
			return err
		}
	}
	return nil
}

func find(entries []Entry, k Key) *Entry {
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

func (table *Table[T]) mended() (all []mender) {
	for _, d := range table.Derived {
		if m, ok := d.(mender); ok {
			all = append(all, m)
		}
	}
	return all
}

// build adds some records to a derived bucket, beginning at from. It returns
// where to continue, nil at the end.
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
		if err := derived.Follow(t, id, nil, v); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// check reads all records and compares the derived buckets with them.
func (table *Table[T]) check(ctx context.Context, t *Tx, found *Findings) error {
	if !t.Has(table.Bucket) {
		return nil // of a newer version
	}
	var records []func(sortid.ID, *T)
	var ends []func(context.Context) error
	for _, d := range table.Derived {
		if !t.Has(d.Name()) {
			continue // of a newer version
		}
		record, end := d.Check(t, found)
		records, ends = append(records, record), append(ends, end)
	}
	for k := range t.Ascend(table.Bucket, nil) {
		if err := ctx.Err(); err != nil {
			return err
		}
		id, err := k.LastID()
		if err != nil || len(k) != sortid.Size {
			found.Addf("%s: the key %x is not an ID", table.Bucket, []byte(k))
			continue
		}
		v, err := table.Read(t, id)
		if err != nil {
			found.Addf("%s: %s: %v", table.Bucket, id, err)
			continue
		}
		for _, record := range records {
			record(id, v)
		}
	}
	for _, end := range ends {
		if err := end(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Check finds missing entries by record, and others by their number.
func (ix Index[T]) Check(t *Tx, found *Findings) (record func(sortid.ID, *T), end func(context.Context) error) {
	b, want := t.Bucket(ix.Bucket), 0
	record = func(id sortid.ID, v *T) {
		for _, e := range ix.Entries(id, v) {
			want++
			value := b.Get(e.Key)
			switch {
			case value == nil:
				found.Derivef("%s lacks an entry of %s", ix.Bucket, id)
			case !bytes.Equal(value, e.Value):
				found.Derivef("%s has another value for %s", ix.Bucket, id)
			}
		}
	}
	end = func(context.Context) error {
		if have := b.Stats().KeyN; have != want {
			found.Derivef("%s has %d entries, its records have %d", ix.Bucket, have, want)
		}
		return nil
	}
	return record, end
}
