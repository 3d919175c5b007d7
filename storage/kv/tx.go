package kv

import (
	"bytes"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"molrun/app/base/sortid"
)

// Tx is a transaction. The bytes that it returns belong to bbolt and are only valid
// during the transaction: copy what must outlive the closure.
type Tx struct {
	bolt    *bolt.Tx // nil once the closure has returned
	schema  *Schema
	changes int // puts and deletions so far
	highest sortid.ID
	open    []openBucket // few, so linear search is fastest
	notes   notes
}

// openBucket is a bucket that the transaction has already used. bbolt would search for it
// every time.
type openBucket struct {
	name   string
	bucket *bolt.Bucket
}

// Bucket returns a bucket of the schema.
func (t *Tx) Bucket(name string) *bolt.Bucket {
	if t.bolt == nil {
		panic("storage: a Tx was used after its closure had returned")
	}
	for i := range t.open {
		if t.open[i].name == name {
			return t.open[i].bucket
		}
	}
	b := t.bolt.Bucket([]byte(name))
	if t.bolt.Writable() {
		b.FillPercent = fillPercent
	}
	t.open = append(t.open, openBucket{name, b})
	return b
}

// Has reports whether a bucket exists. Buckets can be missing from a file that Open has
// not prepared.
func (t *Tx) Has(name string) bool { return t.bolt.Bucket([]byte(name)) != nil }

// Put stores a value. The caller must not modify it before the commit.
func (t *Tx) Put(bucket string, key, value []byte) error {
	t.changes++
	if err := t.Bucket(bucket).Put(key, value); err != nil {
		return fmt.Errorf("put into %s: %w", bucket, err)
	}
	return nil
}

// Replace is Put, but does nothing if the value is unchanged.
func (t *Tx) Replace(bucket string, key, value []byte) error {
	if old := t.Bucket(bucket).Get(key); old != nil && bytes.Equal(old, value) {
		return nil
	}
	return t.Put(bucket, key, value)
}

// Delete removes a key.
func (t *Tx) Delete(bucket string, key []byte) error {
	t.changes++
	if err := t.Bucket(bucket).Delete(key); err != nil {
		return fmt.Errorf("delete from %s: %w", bucket, err)
	}
	return nil
}
