package boltfile

import (
	"context"

	bolt "go.etcd.io/bbolt"
)

// CheckPages reads every page and reports each problem. It reads all entries before it
// runs bbolt's own check, which would crash the process on unreadable parts of the file.
// bbolt's check ignores ctx. No process may write to the database during the check.
func CheckPages(ctx context.Context, db *bolt.DB, report func(problem error)) error {
	unreadable := Guard(func() error {
		return db.View(func(tx *bolt.Tx) error {
			return tx.ForEach(func(_ []byte, b *bolt.Bucket) error { return walkBucket(ctx, b) })
		})
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if unreadable != nil {
		report(unreadable)
		return nil
	}
	return db.View(func(tx *bolt.Tx) error {
		for problem := range tx.Check() {
			report(problem)
		}
		return nil
	})
}

// walkBucket reads both ends of every key and value.
func walkBucket(ctx context.Context, b *bolt.Bucket) error {
	touched := byte(0)
	return b.ForEach(func(k, v []byte) error {
		for _, bytes := range [][]byte{k, v} {
			if n := len(bytes); n > 0 {
				touched += bytes[0] + bytes[n-1]
			}
		}
		return ctx.Err()
	})
}
