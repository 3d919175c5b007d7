package boltfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	bolt "go.etcd.io/bbolt"

	"molrun/app/test/must"
)

func TestHolderOfALockIsFound(t *testing.T) {
	held, err := os.Create(filepath.Join(t.TempDir(), "held"))
	must.OK(t, err)
	defer held.Close()
	must.OK(t, syscall.Flock(int(held.Fd()), syscall.LOCK_EX))
	free := filepath.Join(t.TempDir(), "free")
	must.OK(t, os.WriteFile(free, nil, 0o600))
	if p, ok := Holder(held.Name()); !ok || p.PID != os.Getpid() || p.Name == "" {
		t.Errorf("%+v, %v; want this process", p, ok)
	}
	for _, path := range []string{free, free + "-none"} {
		if p, ok := Holder(path); ok {
			t.Errorf("%s is held by %v", path, p)
		}
	}
}

func TestUnreadablePartOfAFileIsAnError(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	must.OK(t, err)
	defer f.Close()
	must.OK(t, f.Truncate(1<<16))
	data, err := syscall.Mmap(int(f.Fd()), 0, 1<<16, syscall.PROT_READ, syscall.MAP_SHARED)
	must.OK(t, err)
	defer syscall.Munmap(data)
	must.OK(t, f.Truncate(0))
	touched := byte(0)
	if err := Guard(func() error { touched = data[1<<15]; return nil }); err == nil {
		t.Errorf("it reads as %d", touched)
	}
}

func TestDifferencesOfACopyAreFound(t *testing.T) {
	for name, tt := range map[string]struct {
		a, b string // contents of the databases; "" means empty
		same bool
	}{
		"equal": {"x", "x", true}, "both empty": {"", "", true}, "empty copy": {"", "x", false}, "empty original": {"x", "", false},
		"another value": {"x", "y", false},
	} {
		databases := make([]*bolt.DB, 2)
		for i, value := range []string{tt.a, tt.b} {
			db, err := bolt.Open(filepath.Join(t.TempDir(), "db"), 0o600, nil)
			must.OK(t, err)
			defer db.Close()
			databases[i] = db
			if value == "" {
				continue
			}
			must.OK(t, db.Update(func(tx *bolt.Tx) error {
				b, err := tx.CreateBucket([]byte("bucket"))
				must.OK(t, err)
				return b.Put([]byte("key"), []byte(value))
			}))
		}
		err := databases[0].View(func(a *bolt.Tx) error {
			return databases[1].View(func(b *bolt.Tx) error { return compareBuckets(t.Context(), a, b) })
		})
		if tt.same != (err == nil) {
			t.Errorf("%s: error %v, want one: %v", name, err, !tt.same)
		}
	}
}
