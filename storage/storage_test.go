package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/sortid"
	"molrun/app/base/unit"
	"molrun/app/test/must"
)

// newPath returns the path of a new database, in memory if possible: syncs take most of
// the time of these tests.
func newPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "molrun-test-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { must.OK(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "jobs.db")
}

// openAt opens a store that is closed when the test ends.
func openAt(t testing.TB, path string, o Options) *Store {
	t.Helper()
	s, err := Open(path, o)
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, s.Close()) })
	return s
}

// openNew opens a new store that is checked when the test ends.
func openNew(t testing.TB) *Store {
	t.Helper()
	s := openAt(t, newPath(t), Options{
		Fatal: func(err error) { t.Errorf("the store failed: %v", err) },
	})
	t.Cleanup(func() { checkStore(t, s) })
	return s
}

func checkStore(t testing.TB, s *Store) {
	t.Helper()
	must.OK(t, s.Check(context.Background()))
}

func update(t testing.TB, s *Store, fn func(app.Tx) error) {
	t.Helper()
	must.OK(t, s.Update(t.Context(), fn))
}

func view(t testing.TB, s *Store, fn func(app.Tx) error) {
	t.Helper()
	must.OK(t, s.View(t.Context(), fn))
}

// testID returns the n-th ID. IDs ascend with n.
func testID(n int) sortid.ID {
	var id sortid.ID
	binary.BigEndian.PutUint64(id[:], uint64(1_700_000_000_000+n)<<16)
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

func jobID(n int) app.JobID { return app.JobID(testID(n).String()) }

// testJob returns a queued job identified by its number.
func testJob(n int) *app.Job {
	return &app.Job{
		ID:           jobID(n),
		Name:         fmt.Sprintf("job-%d", n),
		Type:         "echo",
		Version:      "1",
		Status:       app.Queued,
		Settings:     []byte(fmt.Sprintf(`{"steps":%d}`, n)),
		Organization: "lab",
		Email:        "ann@lab.example",
		CreatedAt:    unit.At(testID(n).Time()),
		Executor:     "local",
		Private:      app.Private{Needs: placement.Resources{CPUs: 1, MemoryBytes: 1 << 30}},
	}
}

func testJobs(n int) []*app.Job {
	all := make([]*app.Job, n)
	for i := range all {
		all[i] = testJob(i)
	}
	return all
}

func putJobs(t testing.TB, s *Store, jobs ...*app.Job) {
	t.Helper()
	update(t, s, func(tx app.Tx) error {
		for _, j := range jobs {
			if err := tx.PutJob(j); err != nil {
				return err
			}
		}
		return nil
	})
}

// edit changes a closed database without using the store.
func edit(t *testing.T, path string, change func(*bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	must.OK(t, err)
	must.OK(t, errors.Join(db.Update(change), db.Close()))
}
