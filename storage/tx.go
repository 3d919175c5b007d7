package storage

import (
	"bytes"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"molrun/app"
)

// The buckets of records; tables name those of their indexes.
const (
	bucketMeta        = "meta"
	bucketJobs        = "jobs"
	bucketJobsPrivate = "jobs.private"
	bucketUploads     = "uploads"
	bucketKeys        = "keys"
	bucketDefinitions = "definitions"
)

// tx is app.Tx on a transaction of bbolt. Bytes that bbolt gives die with it,
// so whatever leaves this package is a copy.
type tx struct {
	bolt    *bolt.Tx // nil once the closure has returned
	changes int      // puts and deletions so far
	top     app.IDBytes
	open    []openBucket // few, so that looking through them is the fastest
}

// openBucket is a bucket that was used before in the transaction: to open one
// costs a search.
type openBucket struct {
	name   string
	bucket *bolt.Bucket
}

var _ app.Tx = (*tx)(nil)

// bucket gives an open bucket. All of them exist once Open has returned.
func (t *tx) bucket(name string) *bolt.Bucket {
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
		b.FillPercent = fullness(name)
	}
	t.open = append(t.open, openBucket{name, b})
	return b
}

// fullness says how full a page is left that is split. Records grow at the end of
// their bucket alone, so nothing comes between them later. Each listing of an
// index grows at its own end, behind which the next one begins: a split there
// leaves behind mostly what does not grow any more, too. Half full pages, as
// bbolt would leave them, take a third more room.
func fullness(bucket string) float64 {
	switch bucket {
	case bucketJobs, bucketJobsPrivate, bucketUploads:
		return 0.9
	}
	return 0.8
}

// put stores a value, which has to stay as it is until the commit.
func (t *tx) put(bucket string, key, value []byte) error {
	t.changes++
	if err := t.bucket(bucket).Put(key, value); err != nil {
		return fmt.Errorf("put into %s: %w", bucket, err)
	}
	return nil
}

// replace is put, but not where the value is there already.
func (t *tx) replace(bucket string, key, value []byte) error {
	if old := t.bucket(bucket).Get(key); old != nil && bytes.Equal(old, value) {
		return nil
	}
	return t.put(bucket, key, value)
}

func (t *tx) delete(bucket string, key []byte) error {
	t.changes++
	if err := t.bucket(bucket).Delete(key); err != nil {
		return fmt.Errorf("delete from %s: %w", bucket, err)
	}
	return nil
}

// raise notes an ID that is stored, for the floor.
func (t *tx) raise(id app.IDBytes) {
	if idLess(t.top, id) {
		t.top = id
	}
}
