package storage

import (
	"bytes"
	"context"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"molrun/app"
)

// table is a bucket of records under their IDs, with the indexes and sums that
// follow from them. To add one is to declare it: Open builds what is missing.
// One whose entries change needs another name, or a migration that removes it.
type table[T any] struct {
	bucket  string
	read    func(t *tx, id app.IDBytes) (*T, error)
	indexes []index[T]
	sums    []sum[T]
}

// follower is a bucket that follows from a table's records.
type follower[T any] interface {
	name() string
	follow(t *tx, id app.IDBytes, old, now *T) error
}

func (tab *table[T]) followers() []follower[T] {
	all := make([]follower[T], 0, len(tab.indexes)+len(tab.sums))
	for i := range tab.indexes {
		all = append(all, &tab.indexes[i])
	}
	for i := range tab.sums {
		all = append(all, &tab.sums[i])
	}
	return all
}

// index declares which entries a record has in the index's bucket. Every key
// ends with the record's ID, so no two records share one.
type index[T any] struct {
	bucket  string
	entries func(id app.IDBytes, v *T) []entry
}

// entry is a key of an index. Its value, mostly empty, saves a look at the
// record where every entry is visited.
type entry struct {
	key   key
	value []byte
}

func (e entry) equal(other entry) bool {
	return bytes.Equal(e.key, other.key) && bytes.Equal(e.value, other.value)
}

// indexed is a table of whatever type, for Open and Check.
type indexed interface {
	indexNames() []string
	build(t *tx, index string, from []byte, records int) (next []byte, err error)
	check(ctx context.Context, t *tx, found *problems) error
}

// tables are all that have indexes.
var tables = []indexed{&jobs, &uploads}

// reindex makes indexes and sums follow a record's change; nil is no record.
func (tab *table[T]) reindex(t *tx, id app.IDBytes, old, now *T) error {
	for i := range tab.indexes {
		if err := tab.indexes[i].follow(t, id, old, now); err != nil {
			return err
		}
	}
	for i := range tab.sums {
		if err := tab.sums[i].follow(t, id, old, now); err != nil {
			return err
		}
	}
	return nil
}

func (ix *index[T]) name() string { return ix.bucket }

func (ix *index[T]) follow(t *tx, id app.IDBytes, old, now *T) error {
	return ix.change(t, ix.of(id, old), ix.of(id, now))
}

func (ix *index[T]) of(id app.IDBytes, v *T) []entry {
	if v == nil {
		return nil
	}
	return ix.entries(id, v)
}

// change puts and deletes what differs.
func (ix *index[T]) change(t *tx, old, now []entry) error {
	for _, e := range old {
		if !holdsKey(now, e.key) {
			if err := t.delete(ix.bucket, e.key); err != nil {
				return err
			}
		}
	}
	for _, e := range now {
		if !holds(old, e) {
			if err := t.put(ix.bucket, e.key, e.value); err != nil {
				return err
			}
		}
	}
	return nil
}

func holds(all []entry, e entry) bool {
	for _, other := range all {
		if e.equal(other) {
			return true
		}
	}
	return false
}

func holdsKey(all []entry, k key) bool {
	for _, other := range all {
		if bytes.Equal(k, other.key) {
			return true
		}
	}
	return false
}

func (tab *table[T]) indexNames() []string {
	var names []string
	for _, f := range tab.followers() {
		names = append(names, f.name())
	}
	return names
}

// build adds some records to an index or sum, beginning at from, and gives
// where to go on, nil at the end.
func (tab *table[T]) build(t *tx, name string, from []byte, records int) ([]byte, error) {
	f := tab.follower(name)
	w := t.walk(tab.bucket)
	for w.seek(from); w.key != nil; w.next() {
		if records--; records < 0 {
			return bytes.Clone(w.key), nil
		}
		id, err := key(w.key).lastID()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", tab.bucket, err)
		}
		v, err := tab.read(t, id)
		if err != nil {
			return nil, err
		}
		if err := f.follow(t, id, nil, v); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (tab *table[T]) follower(name string) follower[T] {
	for _, f := range tab.followers() {
		if f.name() == name {
			return f
		}
	}
	panic("storage: no index " + name)
}

// check compares the indexes with the records both ways: each record has its
// entries, and no index has more. It counts what the sums have to be.
func (tab *table[T]) check(ctx context.Context, t *tx, found *problems) error {
	want := make(map[string]int, len(tab.indexes))
	counted := make([]map[string]app.Usage, len(tab.sums))
	for i := range counted {
		counted[i] = map[string]app.Usage{}
	}
	w := t.walk(tab.bucket)
	for w.seek(nil); w.key != nil; w.next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		id, err := key(w.key).lastID()
		if err != nil || len(w.key) != app.IDSize {
			found.addf("%s: a key is no ID: %x", tab.bucket, w.key)
			continue
		}
		v, err := tab.read(t, id)
		if err != nil {
			found.addf("%s: %s: %v", tab.bucket, id, err)
			continue
		}
		for _, ix := range tab.indexes {
			entries := ix.of(id, v)
			want[ix.bucket] += len(entries)
			checkEntries(t.bucket(ix.bucket), ix.bucket, id, entries, found)
		}
		for i := range tab.sums {
			if k, share := tab.sums[i].of(v); k != nil {
				counted[i][string(k)] = counted[i][string(k)].Plus(share)
			}
		}
	}
	for _, ix := range tab.indexes {
		if have := t.bucket(ix.bucket).Stats().KeyN; have != want[ix.bucket] {
			found.derivef("%s has %d entries, its records have %d", ix.bucket, have, want[ix.bucket])
		}
	}
	for i := range tab.sums {
		if err := tab.sums[i].check(ctx, t, counted[i], found); err != nil {
			return err
		}
	}
	return nil
}

func checkEntries(b *bolt.Bucket, name string, id app.IDBytes, entries []entry, found *problems) {
	for _, e := range entries {
		value := b.Get(e.key)
		switch {
		case value == nil:
			found.derivef("%s lacks an entry of %s", name, id)
		case !bytes.Equal(value, e.value):
			found.derivef("%s has another value for %s", name, id)
		}
	}
}
