package boltfile

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"molrun/app/test/must"
)

// TestCyclicBucketTreeIsRejected makes a branch page its own child, as a single
// flipped bit could.
func TestCyclicBucketTreeIsRejected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	db, err := bolt.Open(path, 0o600, nil)
	must.OK(t, err)
	var root, size int64
	must.OK(t, db.Update(func(tx *bolt.Tx) error {
		for i := range 100 {
			_, err := tx.CreateBucket(fmt.Appendf(nil, "%0*d", 100, i))
			must.OK(t, err)
		}
		return nil
	}))
	must.OK(t, db.View(func(tx *bolt.Tx) error {
		root, size = int64(tx.Cursor().Bucket().Root()), int64(db.Info().PageSize)
		return nil
	}))
	must.OK(t, db.Close())
	again, err := openGuarded(path, &bolt.Options{})
	must.OK(t, err) // the intact file is accepted
	must.OK(t, again.Close())
	data, err := os.ReadFile(path)
	must.OK(t, err)
	binary.NativeEndian.PutUint64(data[root*size+pageHead+pageElement+8:], uint64(root))
	must.OK(t, os.WriteFile(path, data, 0o600))
	must.Fail(t, "the error", must.Error2(openGuarded(path, &bolt.Options{})), "twice")
}
