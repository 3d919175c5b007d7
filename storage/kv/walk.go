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

// Beside is a position in a bucket that goes along with another of the same keys, which
// costs less than looking each of them up.
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
// order. In a writable transaction it first collects all of them: on leaves
// that the transaction has emptied, bbolt's Prev ends too early and its Last
// may never return.
func (t *Tx) Descend(bucket string, prefix, bound []byte) iter.Seq[Key] {
	return func(yield func(Key) bool) {
		if t.bolt.Writable() {
			var keys []Key
			for k := range t.Ascend(bucket, prefix) {
				if bytes.Compare(k, bound) >= 0 {
					break
				}
				keys = append(keys, k)
			}
			for i := len(keys) - 1; i >= 0 && yield(keys[i]); i-- {
			}
			return
		}
		c := t.Bucket(bucket).Cursor()
		k, _ := c.Seek(bound)
		if k == nil {
			k, _ = c.Last()
		} else {
			k, _ = c.Prev()
		}
		for ; k != nil && bytes.HasPrefix(k, prefix) && yield(k); k, _ = c.Prev() {
		}
	}
}
