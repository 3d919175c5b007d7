package kv

import (
	"bytes"
	"context"

	"molrun/app"
)

// Index derives entries from each record. Every key ends with the record's ID,
// so no two records share one.
type Index[T any] struct {
	Bucket  string
	Entries func(id app.IDBytes, v *T) []Entry
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
func (ix Index[T]) Follow(t *Tx, id app.IDBytes, old, now *T) error {
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

// Check finds missing entries by record, and others by their number.
func (ix Index[T]) Check(t *Tx, found *Findings) (record func(app.IDBytes, *T), end func(context.Context) error) {
	b, want := t.Bucket(ix.Bucket), 0
	record = func(id app.IDBytes, v *T) {
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
