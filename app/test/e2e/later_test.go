package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"molrun/app/test/must"
)

// A version does not open what a later one has written, and leaves it as it is.
func TestDataOfALaterVersionIsRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	s.stop()
	data := s.data()
	file := filepath.Join(data, "jobs.db")
	db, err := bolt.Open(file, 0o600, nil)
	must.OK(t, err)
	must.OK(t, db.Update(func(tx *bolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("schema"), []byte("99")) }))
	must.OK(t, db.Close())
	before := must.Read(t, file)
	for _, args := range [][]string{
		{"serve", "--data", data, "--listen", "127.0.0.1:0"},
		{"check", "--data", data},
		{"backup", filepath.Join(t.TempDir(), "b"), "--data", data},
		{"key", "list", "--data", data},
		{"compact", "--data", data},
	} {
		if out, errs, code := s.run(args...); code == 0 || !strings.Contains(errs, "99") || !strings.Contains(errs, "newer") {
			t.Errorf("molrun %s: exit code %d: %s%s", args[0], code, out, errs)
		}
	}
	if must.Read(t, file) != before {
		t.Error("the database was changed")
	}
}
