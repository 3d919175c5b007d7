package kv

import (
	"bytes"
	"iter"

	bolt "go.etcd.io/bbolt"
)

// Walk is a position in a bucket. Unlike a bbolt cursor, it remains valid while the
// transaction puts and deletes.
type Walk struct {
	Key   Key // nil at the end
	Value []byte

	cursor   *bolt.Cursor
	writable bool
}

// Walk returns a Walk of a bucket. The caller starts with Seek.
func (t *Tx) Walk(bucket string) *Walk {
	return &Walk{cursor: t.Bucket(bucket).Cursor(), writable: t.bolt.Writable()}
}

// Seek moves to the first entry at or above key.
func (w *Walk) Seek(key []byte) { w.Key, w.Value = w.cursor.Seek(key) }

// Next moves to the next entry.
func (w *Walk) Next() {
	if !w.writable {
		w.Key, w.Value = w.cursor.Next()
		return
	}
	last := w.Key
	if w.Seek(last); bytes.Equal(w.Key, last) {
		w.Key, w.Value = w.cursor.Next()
	}
}

// Lockstep is a position in a bucket that advances along with a walk over the same keys of
// another bucket, which is cheaper than looking up each key.
type Lockstep struct{ *Walk }

// Beside returns a Lockstep of a bucket.
func (t *Tx) Beside(bucket string) *Lockstep {
	w := t.Walk(bucket)
	w.Seek(nil)
	return &Lockstep{w}
}

// At returns the value of a key, or nil if it has none. Keys must ascend between calls.
func (b *Lockstep) At(key []byte) []byte {
	for b.Key != nil && bytes.Compare(b.Key, key) < 0 {
		b.Next()
	}
	if !bytes.Equal(b.Key, key) {
		return nil
	}
	return b.Value
}

// Ascend iterates in order over the entries whose keys begin with prefix.
func (t *Tx) Ascend(bucket string, prefix []byte) iter.Seq2[Key, []byte] {
	return func(yield func(Key, []byte) bool) {
		w := t.Walk(bucket)
		for w.Seek(prefix); w.Key != nil && bytes.HasPrefix(w.Key, prefix); w.Next() {
			if !yield(w.Key, w.Value) {
				return
			}
		}
	}
}

// Descend iterates in reverse order over the keys that begin with prefix and are below
// bound.
func (t *Tx) Descend(bucket string, prefix, bound []byte) iter.Seq[Key] {
	return func(yield func(Key) bool) {
		for b := t.Back(bucket, prefix, bound); b.Key != nil && yield(b.Key); b.Prev() {
		}
	}
}

// ReverseWalk is a position in a bucket that moves backward through the keys with a prefix.
type ReverseWalk struct {
	Key Key // nil at the end

	prefix []byte
	cursor *bolt.Cursor // nil means that left holds the keys
	left   []Key
}

// Back returns the position of the last key that begins with prefix and is below bound.
// In a writable transaction it first collects all these keys: on leaf pages emptied by
// the same transaction, bbolt's Prev ends too early and its Last might never return.
func (t *Tx) Back(bucket string, prefix, bound []byte) *ReverseWalk {
	b := &ReverseWalk{prefix: prefix}
	if t.bolt.Writable() {
		for k := range t.Ascend(bucket, prefix) {
			if bytes.Compare(k, bound) >= 0 {
				break
			}
			b.left = append(b.left, k)
		}
		b.Prev()
		return b
	}
	b.cursor = t.Bucket(bucket).Cursor()
	if k, _ := b.cursor.Seek(bound); k == nil {
		b.Key, _ = b.cursor.Last()
	} else {
		b.Key, _ = b.cursor.Prev()
	}
	b.end()
	return b
}

// Prev moves to the previous key.
func (b *ReverseWalk) Prev() {
	switch n := len(b.left); {
	case b.cursor != nil:
		b.Key, _ = b.cursor.Prev()
		b.end()
	case n > 0:
		b.Key, b.left = b.left[n-1], b.left[:n-1]
	default:
		b.Key = nil
	}
}

func (b *ReverseWalk) end() {
	if !bytes.HasPrefix(b.Key, b.prefix) {
		b.Key = nil
	}
}
