package kv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"molrun/app/base/fault"
	"molrun/app/test/must"
	"molrun/storage/kv/boltfile"
)

// fill puts values of 256 KiB until the database is full, and returns how many it put.
func fill(t *testing.T, db *DB) int {
	t.Helper()
	for n := range 1000 {
		err := db.Update(t.Context(), func(tx *Tx) error {
			return tx.Put(bucketNotes, []byte(fmt.Sprint(n)), make([]byte, 256<<10))
		})
		if err != nil {
			if fault.CodeOf(err) != fault.StorageFull {
				t.Fatalf("error %v, want STORAGE_FULL", err)
			}
			return n
		}
	}
	t.Fatal("the database was never full")
	return 0
}

// refusesAndServes checks that a full database rejects commits but can be read, and
// accepts commits again once there is space.
func refusesAndServes(t *testing.T, db *DB, makeSpace func()) {
	t.Helper()
	put(t, db, 1)
	stored := fill(t, db)
	highWaterMark := db.HighWaterMark()
	err := db.Update(t.Context(), func(tx *Tx) error {
		if err := putThing(tx, 2); err != nil {
			return err
		}
		return tx.Put(bucketNotes, []byte("more"), make([]byte, 1<<20))
	})
	must.Equal(t, "code", fault.CodeOf(err), fault.StorageFull)
	must.Equal(t, "highWaterMark after a refused commit", db.HighWaterMark(), highWaterMark)
	expectThings(t, db, false, 2)
	expectThings(t, db, true, 1)
	view(t, db, func(tx *Tx) error {
		for n := range stored {
			if tx.Bucket(bucketNotes).Get([]byte(fmt.Sprint(n))) == nil {
				t.Errorf("note %d is missing", n)
			}
		}
		return nil
	})
	makeSpace()
	put(t, db, 3)
	check(t, db)
}

func TestMaxSizeRefusesCleanly(t *testing.T) {
	db := openAt(t, newPath(t), Options{
		MaxSize: 4 << 20,
		Fatal:   func(err error) { t.Errorf("the database failed: %v", err) },
	})
	refusesAndServes(t, db, func() {})
}

func TestFullDiskRefusesCleanly(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("a small file system can't be mounted here: %v", err)
	}
	t.Cleanup(func() { must.OK(t, syscall.Unmount(dir, 0)) })
	db := openAt(t, filepath.Join(dir, "jobs.db"), Options{
		Fatal: func(err error) { t.Errorf("the database failed: %v", err) },
	})
	refusesAndServes(t, db, func() {
		must.OK(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"))
	})
}

// openFailing opens a database of n things that the test will make fail, and counts calls
// of Fatal.
func openFailing(t *testing.T, n int) (*DB, *atomic.Int32) {
	t.Helper()
	var calls atomic.Int32
	db := openAt(t, newPath(t), Options{Fatal: func(error) { calls.Add(1) }})
	put(t, db, upTo(n)...)
	return db, &calls
}

// failSyncs redirects the file of a database to a device that accepts writes but fails
// syncs.
func failSyncs(t *testing.T, db *DB) {
	t.Helper()
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	must.OK(t, err)
	defer null.Close()
	links, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("descriptors can't be found here: %v", err)
	}
	for _, l := range links {
		var fd int
		if _, err := fmt.Sscan(l.Name(), &fd); err != nil {
			continue
		}
		if target, err := os.Readlink("/proc/self/fd/" + l.Name()); err == nil && target == db.Path() {
			must.OK(t, syscall.Dup3(int(null.Fd()), fd, syscall.O_CLOEXEC))
		}
	}
}

// expectFailed checks that a failed database rejects every call, and that Fatal was
// called once.
func expectFailed(t *testing.T, db *DB, calls *atomic.Int32) {
	t.Helper()
	ran := false
	closure := func(*Tx) error { ran = true; return nil }
	if err := db.Update(t.Context(), closure); fault.CodeOf(err) != fault.Internal || ran {
		t.Errorf("update of a failed database: %v, closure ran: %v", err, ran)
	}
	if err := db.View(t.Context(), closure); fault.CodeOf(err) != fault.Internal || ran {
		t.Errorf("view of a failed database: %v, closure ran: %v", err, ran)
	}
	must.Equal(t, "calls of Fatal", calls.Load(), 1)
}

func TestFailedSyncFailsTheWholeGroup(t *testing.T) {
	db, calls := openFailing(t, 1)
	failSyncs(t, db)
	release := block(t, db)
	var all sync.WaitGroup
	for n := range 5 {
		all.Go(func() {
			err := db.Update(context.Background(), func(tx *Tx) error { return putThing(tx, 10+n) })
			must.Equal(t, "code", fault.CodeOf(err), fault.Internal)
		})
	}
	waitQueued(db, 5)
	release()
	all.Wait()
	expectFailed(t, db, calls)
}

func TestFailedDatabaseRunsNoWaitingCall(t *testing.T) {
	db, calls := openFailing(t, 1)
	failSyncs(t, db)
	began, waiting := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		err := db.Update(context.Background(), func(tx *Tx) error {
			close(began)
			<-waiting
			return putThing(tx, 2)
		})
		must.Equal(t, "the call whose commit fails", fault.CodeOf(err), fault.Internal)
	})
	<-began
	var ran atomic.Bool
	all.Go(func() {
		err := db.Update(context.Background(), func(*Tx) error { ran.Store(true); return nil })
		must.Equal(t, "the call that waited", fault.CodeOf(err), fault.Internal)
	})
	waitQueued(db, 1)
	close(waiting)
	all.Wait()
	if ran.Load() {
		t.Error("a failed database ran a call that waited")
	}
	expectFailed(t, db, calls)
}

func TestDamagedPageFailsTheDatabase(t *testing.T) {
	tests := []struct {
		name string
		use  func(db *DB) error
	}{
		{"encountered by a reader", func(db *DB) error {
			defer func() { _ = recover() }() // bbolt's panic propagates to the caller
			return db.View(context.Background(), func(tx *Tx) error {
				_, err := readThing(tx, testID(1))
				return err
			})
		}},
		{"met by the writer", func(db *DB) error {
			err := db.Update(context.Background(), func(tx *Tx) error { return putThing(tx, 2) })
			if fault.CodeOf(err) != fault.Internal {
				return fmt.Errorf("error %w, want INTERNAL", err)
			}
			return nil
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			db, calls := openFailing(t, 300)
			zeroRoot(t, db, bucketThings)
			must.OK(t, tt.use(db))
			expectFailed(t, db, calls)
		})
	}
}

// The second call makes a change, then fails because it sees a change of the first call,
// which the full disk rejects.
func TestFailureDueToARefusedChangeIsNotReported(t *testing.T) {
	db := openAt(t, newPath(t), Options{MaxSize: 4 << 20})
	release := block(t, db)
	var all sync.WaitGroup
	all.Go(func() {
		err := db.Update(context.Background(), func(tx *Tx) error {
			if err := putThing(tx, 1); err != nil {
				return err
			}
			return tx.Put(bucketNotes, []byte("too much"), make([]byte, 8<<20))
		})
		must.Equal(t, "the first call", fault.CodeOf(err), fault.StorageFull)
	})
	waitQueued(db, 1)
	all.Go(func() {
		err := db.Update(context.Background(), func(tx *Tx) error {
			if err := putThing(tx, 2); err != nil {
				return err
			}
			_, err := readThing(tx, testID(1))
			if err == nil {
				return errMine // the thing already exists
			}
			if errors.Is(err, fault.NotFound) {
				return nil
			}
			return err
		})
		if err != nil {
			t.Errorf("the second call: %v, which is about a thing that was never stored", err)
		}
	})
	waitQueued(db, 2)
	release()
	all.Wait()
	expectThings(t, db, false, 1)
	expectThings(t, db, true, 2)
	check(t, db)
}

// A database whose file was moved or replaced must not commit anything that the next
// start would not find.
func TestDatabaseFailsWhenItsFileIsGone(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"moved": func(path string) error { return os.Rename(path, path+".moved") },
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".moved"), os.WriteFile(path, nil, 0o600))
		},
		"its directory moved": func(path string) error {
			return os.Rename(filepath.Dir(path), filepath.Dir(path)+".moved")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var causes []error
			path := filepath.Join(t.TempDir(), "data", "store.db")
			must.OK(t, os.Mkdir(filepath.Dir(path), 0o700))
			db := openAt(t, path, Options{Fatal: func(err error) { causes = append(causes, err) }})
			put(t, db, 1)
			must.OK(t, db.CheckLocation())
			must.OK(t, change(path))
			err := db.Update(t.Context(), func(tx *Tx) error { return putThing(tx, 2) })
			must.Equal(t, "commit to a file that is gone", fault.CodeOf(err), fault.Unavailable)
			must.Equal(t, "check", fault.CodeOf(db.CheckLocation()), fault.Unavailable)
			if len(causes) != 1 || !errors.Is(causes[0], boltfile.ErrGone) {
				t.Errorf("Fatal was called with %v, want ErrGone once", causes)
			}
		})
	}
}
