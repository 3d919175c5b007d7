package kv

import (
	"bytes"
	"iter"

	bolt "go.etcd.io/bbolt"
)

// Walk is a position in a bucket. Unlike a cursor of bbolt it stays valid while
// the transaction puts and deletes.
type Walk struct {
	Key   Key // nil at the end
	Value []byte

	cursor   *bolt.Cursor
	writable bool
}

// Walk returns a position in a bucket, to begin with Seek.
func (t *Tx) Walk(bucket string) *Walk {
	return &Walk{cursor: t.Bucket(bucket).Cursor(), writable: t.bolt.Writable()}
}

// Seek goes to the first entry at or above key.
func (w *Walk) Seek(key []byte) { w.Key, w.Value = w.cursor.Seek(key) }

// Next goes to the next entry.
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

// Beside is a position in a bucket that moves along with a walk over the same keys in
// another one, which is cheaper than a lookup for each key.
type Beside struct{ *Walk }

// Beside returns a position in a bucket.
func (t *Tx) Beside(bucket string) *Beside {
	w := t.Walk(bucket)
	w.Seek(nil)
	return &Beside{w}
}

// At returns the value of a key, nil if there is none. Keys have to ascend.
func (b *Beside) At(key []byte) []byte {
	for b.Key != nil && bytes.Compare(b.Key, key) < 0 {
		b.Next()
	}
	if !bytes.Equal(b.Key, key) {
		return nil
	}
	return b.Value
}

// Ascend walks the entries whose keys begin with prefix, in their order.
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

// Descend walks the keys that begin with prefix and are below bound, in reverse
// order.
func (t *Tx) Descend(bucket string, prefix, bound []byte) iter.Seq[Key] {
	return func(yield func(Key) bool) {
		for b := t.Back(bucket, prefix, bound); b.Key != nil && yield(b.Key); b.Prev() {
		}
	}
}

// Back is a position in a bucket that goes backwards through the keys with a prefix.
type Back struct {
	Key Key // nil at the end

	prefix []byte
	cursor *bolt.Cursor // nil: left has the keys
	left   []Key
}

// Back returns the position of the last key that begins with prefix and is below
// bound. In a writable transaction it first collects all of them: on leaves that the
// transaction has emptied, bbolt's Prev ends too early and its Last may never return.
func (t *Tx) Back(bucket string, prefix, bound []byte) *Back {
	b := &Back{prefix: prefix}
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

// Prev goes to the key before.
func (b *Back) Prev() {
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

func (b *Back) end() {
	if !bytes.HasPrefix(b.Key, b.prefix) {
		b.Key = nil
	}
}
