package boltfile

import (
	"encoding/binary"
	"fmt"
	"os"

	bolt "go.etcd.io/bbolt"
)

// The parts of the page layout that are needed to descend a tree.
const (
	pageHead    = 16 // id, flags, count, overflow
	pageElement = 16 // position, key size, page
	branchFlag  = 1
)

// expectDirectory rejects a file whose tree of buckets contains a cycle, in which bbolt
// would loop forever on the way to any bucket.
func expectDirectory(db *bolt.DB, file *os.File) error {
	size := int64(db.Info().PageSize)
	return db.View(func(tx *bolt.Tx) error {
		seen := map[uint64]bool{}
		for next := []uint64{uint64(tx.Cursor().Bucket().Root())}; len(next) > 0; next = next[1:] {
			if seen[next[0]] {
				return fmt.Errorf("page %d is in the tree of buckets twice", next[0])
			}
			seen[next[0]] = true
			below, err := childrenOf(file, next[0], size)
			if err != nil {
				return err
			}
			next = append(next, below...)
		}
		return nil
	})
}

// childrenOf returns the children of a branch page, or nil for any other page.
func childrenOf(file *os.File, page uint64, size int64) (children []uint64, err error) {
	head := make([]byte, pageHead)
	at := int64(page) * size
	if _, err := file.ReadAt(head, at); err != nil {
		return nil, fmt.Errorf("read page %d: %w", page, err)
	}
	if binary.NativeEndian.Uint16(head[8:])&branchFlag == 0 {
		return nil, nil
	}
	elements := make([]byte, pageElement*int(binary.NativeEndian.Uint16(head[10:])))
	if _, err := file.ReadAt(elements, at+pageHead); err != nil {
		return nil, fmt.Errorf("read page %d: %w", page, err)
	}
	for ; len(elements) > 0; elements = elements[pageElement:] {
		children = append(children, binary.NativeEndian.Uint64(elements[8:]))
	}
	return children, nil
}
