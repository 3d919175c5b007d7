package kv

import (
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"molrun/app/base/sortid"
)

// The floor is a high-water mark: the highest ID ever stored. It outlives the record, so that no
// ID is given twice.
const metaFloor = "floor"

func idLess(a, b sortid.ID) bool { return string(a[:]) < string(b[:]) }

func putFloor(tx *bolt.Tx, id sortid.ID) error {
	if err := tx.Bucket([]byte(Meta)).Put([]byte(metaFloor), id[:]); err != nil {
		return fmt.Errorf("put the floor of IDs: %w", err)
	}
	return nil
}

func readFloor(tx *bolt.Tx) (floor sortid.ID, err error) {
	value := tx.Bucket([]byte(Meta)).Get([]byte(metaFloor))
	if value != nil && len(value) != sortid.Size {
		return floor, errors.New("the floor of IDs is not an ID; restore a backup")
	}
	copy(floor[:], value)
	return floor, nil
}

// checkFloor finds records above the floor, whose IDs could be assigned again.
func checkFloor(t *Tx, floor sortid.ID, found *Findings) {
	for _, table := range t.schema.Tables {
		bucket := table.name()
		if !t.Has(bucket) {
			continue // of a newer version
		}
		if last, _ := t.Bucket(bucket).Cursor().Last(); string(last) > string(floor[:]) {
			found.Derivef("%s has an ID above the floor %s", bucket, floor)
		}
	}
}

// repairFloor raises the floor to the highest ID of the records.
func repairFloor(t *Tx) error {
	floor, err := readFloor(t.bolt)
	if err != nil {
		return err
	}
	highest := floor
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
	if highest == floor {
		return nil
	}
	return putFloor(t.bolt, highest)
}
