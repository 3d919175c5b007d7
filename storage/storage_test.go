package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"molrun/app"
	"molrun/app/fault"
	"molrun/app/placement"
	"molrun/app/unit"
)

// openAt opens a store that is closed when the test ends.
func openAt(t testing.TB, path string, o Options) *Store {
	t.Helper()
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// openNew opens a new store that is checked when the test ends.
func openNew(t testing.TB) *Store {
	t.Helper()
	s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), Options{
		Fatal: func(err error) { t.Errorf("the store broke: %v", err) },
	})
	t.Cleanup(func() { checkStore(t, s) })
	return s
}

func checkStore(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Check(context.Background()); err != nil {
		t.Errorf("check: %v", err)
	}
}

func update(t testing.TB, s *Store, fn func(app.Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), fn); err != nil {
		t.Fatalf("update: %v", err)
	}
}

func view(t testing.TB, s *Store, fn func(app.Tx) error) {
	t.Helper()
	if err := s.View(t.Context(), fn); err != nil {
		t.Fatalf("view: %v", err)
	}
}

// testID gives the n-th ID: IDs rise with n.
func testID(n int) app.IDBytes {
	var id app.IDBytes
	binary.BigEndian.PutUint64(id[:], uint64(1_700_000_000_000+n)<<16)
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

func jobID(n int) app.JobID { return app.JobID(testID(n).String()) }

// testJob gives a queued job that differs from the others by its number.
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

func TestReopenKeepsRecordsAndFloor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := openAt(t, path, Options{})
	putJobs(t, s, testJob(1), testJob(7))
	update(t, s, func(tx app.Tx) error { return tx.DeleteJob(jobID(7)) })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = openAt(t, path, Options{})
	if got, want := s.Floor(), testID(7); got != want {
		t.Errorf("floor %s, want that of the deleted job %s", got, want)
	}
	view(t, s, func(tx app.Tx) error {
		j, err := tx.Job(jobID(1))
		if err == nil && j.Name != "job-1" {
			t.Errorf("job %q, want job-1", j.Name)
		}
		return err
	})
	checkStore(t, s)
}

func TestDatabaseIsPrivateToItsUser(t *testing.T) {
	s := openNew(t)
	info, err := os.Stat(s.db.Path())
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode %o, want 600", got)
	}
}

func TestSecondProcessIsToldWhoHoldsTheDatabase(t *testing.T) {
	t.Parallel() // it waits out the lock
	s := openNew(t)
	second, err := Open(s.db.Path(), Options{})
	if err == nil {
		t.Fatal(errors.Join(errors.New("a second store opened"), second.Close()))
	}
	want := fmt.Sprintf("(process %d)", os.Getpid())
	if _, statErr := os.Stat("/proc/locks"); statErr != nil {
		want = "another process"
	}
	if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "stop it first") {
		t.Errorf("error %q, want it to hold %q and what to do", err, want)
	}
}

// brokenFiles turns a closed store into something that has to be refused.
var brokenFiles = []struct {
	name, message string
	damage        func(path string) error
}{
	{"missing", "missing", os.Remove},
	{"empty", "empty", func(path string) error { return os.Truncate(path, 0) }},
	{"cut off after the first pages", "damaged", func(path string) error { return os.Truncate(path, 4*4096) }},
	{"cut off within the first page", "damaged", func(path string) error { return os.Truncate(path, 100) }},
	{"both meta pages overwritten", "damaged", func(path string) error {
		return overwrite(path, 0, make([]byte, 2*4096))
	}},
	{"all overwritten with text", "damaged", func(path string) error {
		return overwrite(path, 0, []byte(strings.Repeat("not a database\n", 4096)))
	}},
	{"all but the meta pages overwritten", "damaged", func(path string) error {
		return overwrite(path, 2*4096, make([]byte, 4<<20))
	}},
}

func overwrite(path string, offset int64, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, offset)
	return errors.Join(err, f.Close())
}

func TestBrokenFileIsRefusedAndLeftAlone(t *testing.T) {
	for _, tt := range brokenFiles {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "jobs.db")
			s := openAt(t, path, Options{})
			putJobs(t, s, testJobs(200)...)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := tt.damage(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)

			s, err := Open(path, Options{})
			if err == nil {
				t.Fatal(errors.Join(errors.New("it was opened"), s.Close()))
			}
			if !strings.Contains(err.Error(), tt.message) {
				t.Errorf("error %q, want it to say %q", err, tt.message)
			}
			if after, _ := os.ReadFile(path); string(before) != string(after) {
				t.Error("the refused file was changed")
			}
		})
	}
}

func TestDatabaseOfAnotherProgramIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("theirs"))
		return err
	})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(path, Options{}); err == nil {
		t.Error(errors.Join(errors.New("it was opened"), s.Close()))
	} else if !strings.Contains(err.Error(), "another program's") {
		t.Errorf("error %q, want it to say that the database is another program's", err)
	}
}

// TestGrowingFileDoesNotWaitForReaders would hang if the file outgrew its map.
func TestGrowingFileDoesNotWaitForReaders(t *testing.T) {
	s := openNew(t)
	view(t, s, func(app.Tx) error {
		grown := make(chan error, 1)
		go func() {
			big := make([]byte, 4<<20)
			for n := range 6 {
				err := s.Update(context.Background(), func(tx app.Tx) error {
					return tx.PutDefinition(fmt.Sprint(n), big)
				})
				if err != nil {
					grown <- err
					return
				}
			}
			grown <- nil
		}()
		select {
		case err := <-grown:
			return err
		case <-time.After(time.Minute):
			return errors.New("the writer waits for a reader")
		}
	})
	if info, err := os.Stat(s.db.Path()); err != nil || info.Size() < 20<<20 {
		t.Errorf("the file has not grown beyond 20 MiB: %v, %v", info.Size(), err)
	}
}

func TestReadersSeeOneStateWhileOthersWrite(t *testing.T) {
	s := openNew(t)
	putJobs(t, s, testJob(1))
	view(t, s, func(tx app.Tx) error {
		putJobs(t, s, testJob(2))
		if _, err := tx.Job(jobID(2)); !errors.Is(err, fault.NotFound) {
			t.Errorf("a view saw a later commit: %v", err)
		}
		return nil
	})
}

func TestPanicOfAViewEndsTheViewAlone(t *testing.T) {
	s := openNew(t)
	func() {
		defer func() {
			if v := recover(); v != errMine {
				t.Errorf("recovered %v, want what the closure panicked with", v)
			}
		}()
		_ = s.View(t.Context(), func(app.Tx) error { panic(errMine) })
	}()
	putJobs(t, s, testJob(1))
	if open := s.db.Stats().OpenTxN; open != 0 {
		t.Errorf("%d read transactions are left open", open)
	}
}

func TestUseOfTxAfterItsClosurePanics(t *testing.T) {
	s := openNew(t)
	var kept app.Tx
	view(t, s, func(tx app.Tx) error { kept = tx; return nil })
	defer func() {
		if recover() == nil {
			t.Error("a Tx was usable after its closure")
		}
	}()
	_, _ = kept.Job(jobID(1))
}

// filesOf gives the descriptors of this process that are open on path.
func filesOf(t *testing.T, path string) []int {
	t.Helper()
	links, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("descriptors can't be found here: %v", err)
	}
	var found []int
	for _, l := range links {
		var fd int
		if _, err := fmt.Sscan(l.Name(), &fd); err != nil {
			continue
		}
		if target, err := os.Readlink("/proc/self/fd/" + l.Name()); err == nil && target == path {
			found = append(found, fd)
		}
	}
	return found
}

// divert makes the store's writes go to a device instead.
func divert(t *testing.T, s *Store, device string) {
	t.Helper()
	to, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there is no %s here: %v", device, err)
	}
	defer to.Close()
	for _, fd := range filesOf(t, s.db.Path()) {
		if err := syscall.Dup3(int(to.Fd()), fd, syscall.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
	}
}
