package kv

import (
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"molrun/app/base/sortid"
)

// The high-water mark is the highest ID ever stored. It outlives the record, so
// that no ID is assigned twice.
const metaHighWaterMark = "floor"

func idLess(a, b sortid.ID) bool { return string(a[:]) < string(b[:]) }

func putHighWaterMark(tx *bolt.Tx, id sortid.ID) error {
	if err := tx.Bucket([]byte(Meta)).Put([]byte(metaHighWaterMark), id[:]); err != nil {
		return fmt.Errorf("put the high-water mark of IDs: %w", err)
	}
	return nil
}

func readHighWaterMark(tx *bolt.Tx) (highWaterMark sortid.ID, err error) {
	value := tx.Bucket([]byte(Meta)).Get([]byte(metaHighWaterMark))
	if value != nil && len(value) != sortid.Size {
		return highWaterMark, errors.New("the high-water mark of IDs is not an ID; restore a backup")
	}
	copy(highWaterMark[:], value)
	return highWaterMark, nil
}

// checkHighWaterMark reports records above the high-water mark, whose IDs could be assigned again.
func checkHighWaterMark(t *Tx, highWaterMark sortid.ID, found *ProblemList) {
	for _, table := range t.schema.Tables {
		bucket := table.name()
		if !t.Has(bucket) {
			continue // added by a newer version
		}
		if last, _ := t.Bucket(bucket).Cursor().Last(); string(last) > string(highWaterMark[:]) {
			found.AddDerivablef("%s has an ID above the high-water mark %s", bucket, highWaterMark)
		}
	}
}

// repairHighWaterMark raises the high-water mark to the highest ID of the records.
func repairHighWaterMark(t *Tx) error {
	highWaterMark, err := readHighWaterMark(t.bolt)
	if err != nil {
		return err
	}
	highest := highWaterMark
	for _, table := range t.schema.Tables {
		k, _ := t.Bucket(table.name()).Cursor().Last()
		if k == nil {
			continue
		}
		id, err := Key(k).LastID()
		if err != nil {
			return err
		}
		if idLess(highest, id) {
			highest = id
		}
	}
	if highest == highWaterMark {
		return nil
	}
	return putHighWaterMark(t.bolt, highest)
}
