package storage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"

	"molrun/app"
	"molrun/app/fault"
)

var errMine = errors.New("mine")

// commits gives how many commits the database has seen.
func commits(t *testing.T, s *Store) int {
	t.Helper()
	var id int
	if err := s.db.View(func(tx *bolt.Tx) error { id = tx.ID(); return nil }); err != nil {
		t.Fatal(err)
	}
	return id
}

// hold keeps the writer busy until release is called.
func hold(t *testing.T, s *Store) (release func()) {
	t.Helper()
	held, free := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	once := sync.OnceFunc(func() { close(held) })
	go func() {
		done <- s.Update(context.Background(), func(app.Tx) error {
			once()
			<-free
			return nil
		})
	}()
	<-held
	return func() {
		close(free)
		if err := <-done; err != nil {
			t.Errorf("the update that held the writer: %v", err)
		}
	}
}

// waitQueued returns once n callers are in the queue.
func waitQueued(s *Store, n int) {
	for len(s.queue) < n {
		runtime.Gosched()
	}
}

func TestFailuresOfNeighboursUndoNothingElse(t *testing.T) {
	s := openNew(t)
	release := hold(t, s)
	const callers = 200
	var all sync.WaitGroup
	for n := range callers {
		all.Go(func() {
			defer func() {
				if v := recover(); (v != nil) != (n%5 == 3) {
					t.Errorf("caller %d panicked with %v", n, v)
				}
			}()
			err := s.Update(context.Background(), func(tx app.Tx) error {
				if n%5 == 1 { // before any change
					return fmt.Errorf("caller %d: %w", n, errMine)
				}
				if err := tx.PutJob(testJob(n)); err != nil {
					return err
				}
				switch n % 5 {
				case 2: // after one
					return fmt.Errorf("caller %d: %w", n, errMine)
				case 3:
					panic("caller's own mistake")
				}
				return nil
			})
			failed := n%5 == 1 || n%5 == 2
			if failed != errors.Is(err, errMine) || failed && err.Error() != fmt.Sprintf("caller %d: mine", n) {
				t.Errorf("caller %d: error %v", n, err)
			}
		})
	}
	waitQueued(s, callers)
	release()
	all.Wait()
	view(t, s, func(tx app.Tx) error {
		for n := range callers {
			_, err := tx.Job(jobID(n))
			want := n%5 == 0 || n%5 == 4
			if want != (err == nil) || err != nil && !errors.Is(err, fault.NotFound) {
				t.Errorf("job %d: there %v, want %v (%v)", n, err == nil, want, err)
			}
		}
		return nil
	})
}

func TestWaitingCallersShareOneCommit(t *testing.T) {
	s := openNew(t)
	release := hold(t, s)
	before := commits(t, s)
	var all sync.WaitGroup
	for n := range 50 {
		all.Go(func() { putJobs(t, s, testJob(n)) })
	}
	waitQueued(s, 50)
	release()
	all.Wait()
	if got := commits(t, s) - before; got != 1 {
		t.Errorf("%d commits, want 1", got)
	}
}

func TestUpdateWithoutChangesDoesNotCommit(t *testing.T) {
	s := openNew(t)
	putJobs(t, s, testJob(1))
	before := commits(t, s)
	update(t, s, func(tx app.Tx) error {
		if _, err := tx.Job(jobID(1)); err != nil {
			return err
		}
		return tx.PutJob(testJob(1)) // as it is stored
	})
	if got := commits(t, s) - before; got != 0 {
		t.Errorf("%d commits, want none", got)
	}
}

// In a bubble only timers make time go on, so that no time at all says that
// no timer was waited for.
func TestLoneCallerWaitsForNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openNew(t)
		release := hold(t, s)
		var crowd sync.WaitGroup
		for n := range 20 {
			crowd.Go(func() { putJobs(t, s, testJob(n)) })
		}
		waitQueued(s, 20)
		release()
		crowd.Wait()
		time.Sleep(crowdLasts + 1)

		start := time.Now()
		for n := range 10 {
			putJobs(t, s, testJob(100+n))
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("a lone caller waited for timers of %s", took)
		}
	})
}

func TestWriterWaitsForACrowdOnlySoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openNew(t)
		release := hold(t, s)
		var crowd sync.WaitGroup
		for n := range 20 {
			crowd.Go(func() { putJobs(t, s, testJob(n)) })
		}
		waitQueued(s, 20)
		release()
		crowd.Wait()

		start := time.Now()
		putJobs(t, s, testJob(100)) // the others do not come back
		if took := time.Since(start); took != gatherFor {
			t.Errorf("gathering took %s, want %s", took, gatherFor)
		}
	})
}

func TestContextThatEndsBeforeItsTurnLeavesNothing(t *testing.T) {
	s := openNew(t)
	release := hold(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- s.Update(ctx, func(tx app.Tx) error {
			t.Error("a withdrawn closure ran")
			return tx.PutJob(testJob(1))
		})
	}()
	waitQueued(s, 1)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	release()
	update(t, s, func(app.Tx) error { return nil }) // the writer is past it

	if err := s.Update(ctx, func(app.Tx) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("update with an ended context: %v", err)
	}
	if err := s.View(ctx, func(app.Tx) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("view with an ended context: %v", err)
	}
}

func TestContextThatEndsAfterItsTurnWaitsForTheCommit(t *testing.T) {
	s := openNew(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Update(ctx, func(tx app.Tx) error {
		cancel()
		return tx.PutJob(testJob(1))
	})
	if err != nil {
		t.Fatalf("error %v, want none: the commit was made", err)
	}
	view(t, s, func(tx app.Tx) error {
		_, err := tx.Job(jobID(1))
		return err
	})
}

func TestPanicIsTheCallersOwn(t *testing.T) {
	s := openNew(t)
	func() {
		defer func() {
			err, ok := recover().(error)
			if !ok || !errors.Is(err, errMine) || !strings.Contains(err.Error(), "TestPanicIsTheCallersOwn") {
				t.Errorf("recovered %v, want the panic's error and its stack", err)
			}
		}()
		_ = s.Update(t.Context(), func(tx app.Tx) error {
			if err := tx.PutJob(testJob(1)); err != nil {
				return err
			}
			panic(errMine)
		})
	}()
	view(t, s, func(tx app.Tx) error {
		if _, err := tx.Job(jobID(1)); !errors.Is(err, fault.NotFound) {
			t.Errorf("what the closure did before its panic is there: %v", err)
		}
		return nil
	})
}

func TestClosureThatEndsItsGoroutineDoesNotEndTheWriter(t *testing.T) {
	s := openNew(t)
	err := s.Update(t.Context(), func(tx app.Tx) error {
		if err := tx.PutJob(testJob(1)); err != nil {
			return err
		}
		runtime.Goexit()
		return nil
	})
	if fault.CodeOf(err) != fault.Internal {
		t.Errorf("error %v, want INTERNAL", err)
	}
	putJobs(t, s, testJob(2))
	view(t, s, func(tx app.Tx) error {
		if _, err := tx.Job(jobID(1)); !errors.Is(err, fault.NotFound) {
			t.Errorf("the abandoned change is there: %v", err)
		}
		_, err := tx.Job(jobID(2))
		return err
	})
}

func TestCloseFinishesWhatWasAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := openAt(t, path, Options{})
	release := hold(t, s)
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() { putJobs(t, s, testJob(n)) })
	}
	waitQueued(s, 20)
	all.Go(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	release()
	all.Wait()

	nothing := func(app.Tx) error { return nil }
	if err := s.Update(t.Context(), nothing); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("update of a closed store: %v, want UNAVAILABLE", err)
	}
	if err := s.View(t.Context(), nothing); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("view of a closed store: %v, want UNAVAILABLE", err)
	}

	s = openAt(t, path, Options{})
	view(t, s, func(tx app.Tx) error {
		for n := range 20 {
			if _, err := tx.Job(jobID(n)); err != nil {
				t.Errorf("job %d: %v", n, err)
			}
		}
		return nil
	})
	checkStore(t, s)
}

// fill puts definitions of 256 KiB until the store is full, and gives how
// many there are.
func fill(t *testing.T, s *Store) int {
	t.Helper()
	for n := range 1000 {
		err := s.Update(t.Context(), func(tx app.Tx) error {
			return tx.PutDefinition(fmt.Sprint(n), make([]byte, 256<<10))
		})
		if err != nil {
			if fault.CodeOf(err) != fault.StorageFull {
				t.Fatalf("error %v, want STORAGE_FULL", err)
			}
			return n
		}
	}
	t.Fatal("the store never was full")
	return 0
}

// refusesAndServes finds that a full store reads on, and writes again once
// there is space.
func refusesAndServes(t *testing.T, s *Store, makeSpace func()) {
	t.Helper()
	putJobs(t, s, testJob(1))
	stored := fill(t, s)
	floor := s.Floor()
	err := s.Update(t.Context(), func(tx app.Tx) error {
		if err := tx.PutJob(testJob(2)); err != nil {
			return err
		}
		return tx.PutDefinition("more", make([]byte, 1<<20))
	})
	if fault.CodeOf(err) != fault.StorageFull {
		t.Errorf("error %v, want STORAGE_FULL", err)
	}
	if s.Floor() != floor {
		t.Error("a refused commit raised the floor")
	}
	view(t, s, func(tx app.Tx) error {
		if _, err := tx.Job(jobID(2)); !errors.Is(err, fault.NotFound) {
			t.Errorf("a refused job is there: %v", err)
		}
		for n := range stored {
			if _, err := tx.Definition(fmt.Sprint(n)); err != nil {
				t.Errorf("definition %d: %v", n, err)
			}
		}
		_, err := tx.Job(jobID(1))
		return err
	})
	makeSpace()
	putJobs(t, s, testJob(3))
	checkStore(t, s)
}

func TestMaxSizeRefusesCleanly(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), Options{
		MaxSize: 4 << 20,
		Fatal:   func(err error) { t.Errorf("the store broke: %v", err) },
	})
	refusesAndServes(t, s, func() {})
}

func TestFullDiskRefusesCleanly(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("a small file system can't be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	s := openAt(t, filepath.Join(dir, "jobs.db"), Options{
		Fatal: func(err error) { t.Errorf("the store broke: %v", err) },
	})
	refusesAndServes(t, s, func() {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
			t.Fatal(err)
		}
	})
}

// fatalCounter gives options that note what they are told, and the number.
func fatalCounter() (Options, *atomic.Int32) {
	var calls atomic.Int32
	return Options{Fatal: func(error) { calls.Add(1) }}, &calls
}

// answersNothing finds that a broken store refuses all, and has said so once.
func answersNothing(t *testing.T, s *Store, calls *atomic.Int32) {
	t.Helper()
	ran := false
	closure := func(app.Tx) error { ran = true; return nil }
	if err := s.Update(t.Context(), closure); fault.CodeOf(err) != fault.Internal || ran {
		t.Errorf("update of a broken store: %v, closure ran: %v", err, ran)
	}
	if err := s.View(t.Context(), closure); fault.CodeOf(err) != fault.Internal || ran {
		t.Errorf("view of a broken store: %v, closure ran: %v", err, ran)
	}
	if got := calls.Load(); got != 1 {
		t.Errorf("Fatal was called %d times, want once", got)
	}
}

func TestFailedSyncBreaksTheStore(t *testing.T) {
	o, calls := fatalCounter()
	s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), o)
	putJobs(t, s, testJob(1))
	divert(t, s, "/dev/null") // takes writes and refuses to sync them

	release := hold(t, s)
	var all sync.WaitGroup
	for n := range 5 {
		all.Go(func() {
			err := s.Update(context.Background(), func(tx app.Tx) error { return tx.PutJob(testJob(10 + n)) })
			if fault.CodeOf(err) != fault.Internal {
				t.Errorf("error %v, want INTERNAL", err)
			}
		})
	}
	waitQueued(s, 5)
	release()
	all.Wait()
	answersNothing(t, s, calls)
}

func TestDamagedPageBreaksTheStore(t *testing.T) {
	tests := []struct {
		name string
		use  func(s *Store) error
	}{
		{"met by a reader", func(s *Store) error {
			defer func() { _ = recover() }() // bbolt's, the caller's to handle
			return s.View(context.Background(), func(tx app.Tx) error {
				_, err := tx.Job(jobID(1))
				return err
			})
		}},
		{"met by the writer", func(s *Store) error {
			err := s.Update(context.Background(), func(tx app.Tx) error { return tx.PutJob(testJob(2)) })
			if fault.CodeOf(err) != fault.Internal {
				return fmt.Errorf("error %w, want INTERNAL", err)
			}
			return nil
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, calls := fatalCounter()
			s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), o)
			putJobs(t, s, testJobs(300)...)
			var root int64
			err := s.db.View(func(tx *bolt.Tx) error {
				root = int64(tx.Bucket([]byte(bucketJobs)).Root())
				return nil
			})
			if err == nil {
				err = overwrite(s.db.Path(), root*4096, make([]byte, 4096))
			}
			if err == nil {
				err = tt.use(s)
			}
			if err != nil {
				t.Fatal(err)
			}
			answersNothing(t, s, calls)
		})
	}
}

// TestFailureDueToAChangeThatIsLostIsNotTold has a call fail, after a change of
// its own, because of what another of its group has put and the disk then
// refuses.
func TestFailureDueToAChangeThatIsLostIsNotTold(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), Options{MaxSize: 4 << 20})
	release := hold(t, s)
	var all sync.WaitGroup
	all.Go(func() {
		err := s.Update(context.Background(), func(tx app.Tx) error {
			if err := tx.PutJob(testJob(1)); err != nil {
				return err
			}
			return tx.PutDefinition("too much", make([]byte, 8<<20))
		})
		if fault.CodeOf(err) != fault.StorageFull {
			t.Errorf("the first call: %v, want STORAGE_FULL", err)
		}
	})
	waitQueued(s, 1)
	all.Go(func() {
		err := s.Update(context.Background(), func(tx app.Tx) error {
			if err := tx.PutJob(testJob(2)); err != nil {
				return err
			}
			_, err := tx.Job(jobID(1))
			if err == nil {
				return errMine // there is such a job already
			}
			if errors.Is(err, fault.NotFound) {
				return nil
			}
			return err
		})
		if err != nil {
			t.Errorf("the second call: %v, which is about a job that never was", err)
		}
	})
	waitQueued(s, 2)
	release()
	all.Wait()
	view(t, s, func(tx app.Tx) error {
		if _, err := tx.Job(jobID(1)); !errors.Is(err, fault.NotFound) {
			t.Errorf("a refused job is there: %v", err)
		}
		_, err := tx.Job(jobID(2))
		return err
	})
	checkStore(t, s)
}

// TestBrokenStoreRunsNothingThatWaits has callers wait while the commit before
// theirs breaks the store.
func TestBrokenStoreRunsNothingThatWaits(t *testing.T) {
	o, calls := fatalCounter()
	s := openAt(t, filepath.Join(t.TempDir(), "jobs.db"), o)
	putJobs(t, s, testJob(1))
	divert(t, s, "/dev/null") // takes writes and refuses to sync them

	put, waiting := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		err := s.Update(context.Background(), func(tx app.Tx) error {
			close(put)
			<-waiting
			return tx.PutJob(testJob(2))
		})
		if fault.CodeOf(err) != fault.Internal {
			t.Errorf("the call whose commit fails: %v, want INTERNAL", err)
		}
	})
	<-put
	var ran atomic.Bool
	all.Go(func() {
		err := s.Update(context.Background(), func(app.Tx) error { ran.Store(true); return nil })
		if fault.CodeOf(err) != fault.Internal {
			t.Errorf("the call that waited: %v, want INTERNAL", err)
		}
	})
	waitQueued(s, 1)
	close(waiting)
	all.Wait()
	if ran.Load() {
		t.Error("a broken store ran a call that waited")
	}
	answersNothing(t, s, calls)
}
