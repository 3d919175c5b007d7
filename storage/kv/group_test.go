package kv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"

	"molrun/app/base/fault"
	"molrun/app/base/limit"
	"molrun/app/test/must"
)

var errMine = errors.New("mine")

func nothing(*Tx) error { return nil }

// commits returns the number of the last commit.
func commits(t *testing.T, db *DB) (number int) {
	t.Helper()
	must.OK(t, db.file.View(func(tx *bolt.Tx) error { number = tx.ID(); return nil }))
	return number
}

// block keeps the writer busy until release is called.
func block(t *testing.T, db *DB) (release func()) {
	t.Helper()
	blocked, free := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	once := sync.OnceFunc(func() { close(blocked) })
	go func() {
		done <- db.Update(context.Background(), func(*Tx) error {
			once()
			<-free
			return nil
		})
	}()
	<-blocked
	return func() {
		close(free)
		if err := <-done; err != nil {
			t.Errorf("the update that blocked the writer: %v", err)
		}
	}
}

// waitQueued returns once n callers are in the queue.
func waitQueued(db *DB, n int) {
	for len(db.writer.queue) < n {
		runtime.Gosched()
	}
}

// putTogether has n callers put one thing each in one group.
func putTogether(t *testing.T, db *DB, n int) {
	t.Helper()
	release := block(t, db)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { put(t, db, i) })
	}
	waitQueued(db, n)
	release()
	all.Wait()
}

// expectThings checks that the things with the given numbers are stored, or that they are
// not.
func expectThings(t *testing.T, db *DB, stored bool, numbers ...int) {
	t.Helper()
	view(t, db, func(tx *Tx) error {
		for _, n := range numbers {
			_, err := readThing(tx, testID(n))
			if stored != (err == nil) || err != nil && !errors.Is(err, fault.NotFound) {
				t.Errorf("thing %d: stored %v (%v), want %v", n, err == nil, err, stored)
			}
		}
		return nil
	})
}

func TestFailedCallsUndoNothingOfOthers(t *testing.T) {
	db := openNew(t)
	release := block(t, db)
	const callers = 200
	var all sync.WaitGroup
	for n := range callers {
		all.Go(func() {
			defer func() {
				if v := recover(); (v != nil) != (n%5 == 3) {
					t.Errorf("caller %d panicked with %v", n, v)
				}
			}()
			err := db.Update(context.Background(), func(tx *Tx) error {
				if n%5 == 1 { // fails before any change
					return fmt.Errorf("caller %d: %w", n, errMine)
				}
				if err := putThing(tx, n); err != nil {
					return err
				}
				switch n % 5 {
				case 2: // fails after a change
					return fmt.Errorf("caller %d: %w", n, errMine)
				case 3:
					panic("the caller's bug")
				}
				return nil
			})
			failed := n%5 == 1 || n%5 == 2
			if failed != errors.Is(err, errMine) || failed && err.Error() != fmt.Sprintf("caller %d: mine", n) {
				t.Errorf("caller %d: error %v", n, err)
			}
		})
	}
	waitQueued(db, callers)
	release()
	all.Wait()
	for n := range callers {
		expectThings(t, db, n%5 == 0 || n%5 == 4, n)
	}
}

// Time in a synctest bubble advances only when a timer fires, so if no time has passed,
// the writer did not wait.
func TestWriterWaitsForExpectedCallers(t *testing.T) {
	for _, tt := range []struct {
		name        string
		pause, want time.Duration
	}{
		{"right after a group", 0, gatherFor},
		{"not after a pause", expectFor + 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := openNew(t)
				putTogether(t, db, 20)
				time.Sleep(tt.pause)
				start := time.Now()
				put(t, db, 100) // the other callers make no further calls
				must.Equal(t, "the writer waited", time.Since(start), tt.want)
				for n := range 10 {
					put(t, db, 101+n)
				}
				must.Equal(t, "after single callers, too", time.Since(start), tt.want)
			})
		})
	}
}

func TestContextEndsBeforeTheCallBegins(t *testing.T) {
	db := openNew(t)
	release := block(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- db.Update(ctx, func(tx *Tx) error {
			t.Error("a withdrawn closure ran")
			return putThing(tx, 1)
		})
	}()
	waitQueued(db, 1)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	release()
	update(t, db, nothing) // by now the writer has skipped the canceled call

	if err := db.Update(ctx, nothing); !errors.Is(err, context.Canceled) {
		t.Errorf("update with an ended context: %v", err)
	}
	if err := db.View(ctx, nothing); !errors.Is(err, context.Canceled) {
		t.Errorf("view with an ended context: %v", err)
	}
}

func TestContextEndsAfterTheCallBegins(t *testing.T) {
	db := openNew(t)
	ctx, cancel := context.WithCancel(t.Context())
	must.OK(t, db.Update(ctx, func(tx *Tx) error {
		cancel()
		return putThing(tx, 1)
	}))
	expectThings(t, db, true, 1)
}

func TestPanicReachesItsCaller(t *testing.T) {
	db := openNew(t)
	err, ok := recovered(func() {
		_ = db.Update(t.Context(), func(tx *Tx) error {
			must.OK(t, putThing(tx, 1))
			panic(errMine)
		})
	}).(error)
	if !ok || !errors.Is(err, errMine) || !strings.Contains(err.Error(), "TestPanicReachesItsCaller") {
		t.Errorf("recovered %v, want the panic's error and its stack", err)
	}
	expectThings(t, db, false, 1)
}

func TestGoexitInAClosureDoesNotEndTheWriter(t *testing.T) {
	db := openNew(t)
	err := db.Update(t.Context(), func(tx *Tx) error {
		if err := putThing(tx, 1); err != nil {
			return err
		}
		runtime.Goexit()
		return nil
	})
	must.Equal(t, "code", fault.CodeOf(err), fault.Internal)
	put(t, db, 2)
	expectThings(t, db, false, 1)
	expectThings(t, db, true, 2)
}

func TestCloseFinishesTheQueue(t *testing.T) {
	path := newPath(t)
	db := openAt(t, path, Options{})
	release := block(t, db)
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() { put(t, db, n) })
	}
	waitQueued(db, 20)
	all.Go(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	release()
	all.Wait()

	must.Equal(t, "update of a closed database", fault.CodeOf(db.Update(t.Context(), nothing)), fault.Unavailable)
	must.Equal(t, "view of a closed database", fault.CodeOf(db.View(t.Context(), nothing)), fault.Unavailable)

	db = openAt(t, path, Options{})
	expectThings(t, db, true, upTo(20)...)
	check(t, db)
}

// TestCallersInTheQueueHoldNoSlot checks that another caller can acquire the only slot
// while the first one waits for its commit.
func TestCallersInTheQueueHoldNoSlot(t *testing.T) {
	db := openNew(t)
	g := &limit.Slots{All: 1}
	release := block(t, db)
	inside, leave, err := g.Enter(t.Context(), "ann")
	must.OK(t, err)
	done := make(chan error, 1)
	go func() { done <- db.Update(inside, func(tx *Tx) error { return putThing(tx, 1) }) }()
	waitQueued(db, 1)
	enterSoon(t, g)
	release()
	must.OK(t, <-done)
	leave()
	enterSoon(t, g)
}

func TestReadersThatWaitForACommitHoldNoSlot(t *testing.T) {
	var last lastCommit
	current := last.beginCommit(1)
	g := &limit.Slots{All: 1}
	inside, leave, err := g.Enter(t.Context(), "ann")
	must.OK(t, err)
	done := make(chan error, 1)
	go func() { done <- last.wait(inside, 1, &health{}) }()
	enterSoon(t, g)
	close(current.done)
	must.OK(t, <-done)
	leave()
}

// enterSoon acquires a slot.
func enterSoon(t *testing.T, g *limit.Slots) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), must.Patience)
	defer cancel()
	_, leave, err := g.Enter(ctx, "bob")
	must.OK(t, err)
	leave()
}

func TestCommitsAreToldAndMadeForChangesAlone(t *testing.T) {
	db := openNew(t)
	var told []Commit
	db.OnCommit(func(c Commit) { told = append(told, c) }) // runs in the writer's goroutine
	before := commits(t, db)
	put(t, db, 1)
	update(t, db, nothing)
	put(t, db, 1)          // changes nothing
	putTogether(t, db, 50) // all but one of the things are new
	if got := commits(t, db) - before; got != 2 || len(told) != 2 || told[0].Calls != 1 || told[1].Calls < 49 {
		t.Errorf("%d commits, events %+v; want one with one call and one with the others", got, told)
	}
	for _, c := range told {
		if c.Took <= 0 || c.Err != nil {
			t.Errorf("told %+v", c)
		}
	}
	size, err := db.Size(t.Context())
	must.OK(t, err)
	info, err := os.Stat(db.Path())
	must.OK(t, err)
	if size.Bytes <= 0 || size.Bytes > info.Size() || size.FreeBytes != int64(size.FreePages)*int64(os.Getpagesize()) || size.FreePages == 0 {
		t.Errorf("size %+v of a file of %d bytes", size, info.Size())
	}
}
