package storage

import (
	"bytes"
	"iter"

	bolt "go.etcd.io/bbolt"
)

// walk is a place in a bucket. It stays valid while the transaction puts and
// deletes, which a cursor of bbolt does not.
type walk struct {
	cursor   *bolt.Cursor
	key      key // nil: at the end
	value    []byte
	writable bool
}

func (t *tx) walk(bucket string) *walk {
	return &walk{cursor: t.bucket(bucket).Cursor(), writable: t.bolt.Writable()}
}

// seek goes to the first entry at or above key.
func (w *walk) seek(key []byte) { w.key, w.value = w.cursor.Seek(key) }

// next goes to the entry above the present one.
func (w *walk) next() {
	if !w.writable {
		w.key, w.value = w.cursor.Next()
		return
	}
	last := w.key
	if w.seek(last); bytes.Equal(w.key, last) {
		w.key, w.value = w.cursor.Next()
	}
}

// ascend walks the entries whose keys begin with prefix, upwards.
func (t *tx) ascend(bucket string, prefix []byte) iter.Seq2[key, []byte] {
	return func(yield func(key, []byte) bool) {
		w := t.walk(bucket)
		for w.seek(prefix); w.key != nil && bytes.HasPrefix(w.key, prefix); w.next() {
			if !yield(w.key, w.value) {
				return
			}
		}
	}
}

// descend gives the keys that begin with prefix and are below bound,
// downwards. Where the transaction writes, it costs as much as there are such
// keys, whether they are asked for or not.
func (t *tx) descend(bucket string, prefix, bound []byte) iter.Seq[key] {
	if t.bolt.Writable() {
		return t.descendWritten(bucket, prefix, bound)
	}
	return func(yield func(key) bool) {
		c := t.bucket(bucket).Cursor()
		k, _ := c.Seek(bound)
		if k == nil {
			k, _ = c.Last()
		} else {
			k, _ = c.Prev()
		}
		for ; k != nil && bytes.HasPrefix(k, prefix); k, _ = c.Prev() {
			if !yield(k) {
				return
			}
		}
	}
}

// descendWritten only goes forwards: on leaves that the transaction itself
// has emptied, bbolt's Prev ends too early and its Last may never return.
func (t *tx) descendWritten(bucket string, prefix, bound []byte) iter.Seq[key] {
	return func(yield func(key) bool) {
		var keys []key
		for k := range t.ascend(bucket, prefix) {
			if bytes.Compare(k, bound) >= 0 {
				break
			}
			keys = append(keys, k)
		}
		for i := len(keys) - 1; i >= 0; i-- {
			if !yield(keys[i]) {
				return
			}
		}
	}
}
