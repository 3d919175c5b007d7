// Package storage keeps the records of package app in one bbolt file.
//
// Beside the database, jobs.db, an operator finds
//
//	jobs.db.initialised    says that jobs.db has to be there, and which: with it,
//	                       a missing, empty or other database is an error and
//	                       not a new beginning
//	jobs.db.commits        the number of the last commit; a start tells if the
//	                       database has lost some
//	jobs.db.before-N       the database as it was before it was migrated to
//	                       schema N; may be deleted once the upgrade has proved good
//	jobs.db.before-repair  the same, before molrun check --repair changed it
//	jobs.db.*.tmp          what is being written; removed at the next start
//
// The file has to lie on a local file system and must not be copied while a
// process holds it. A record is JSON under its ID; every index is declared as
// a function of the record (table.go), with keys described in key.go.
package storage

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"molrun/app"
	"molrun/app/fault"
)

// Options are what a store can be told besides its path.
type Options struct {
	// Fatal is called once, when a commit has failed in a way that leaves open
	// what is on the disk, or the database turns out to be damaged. It has to
	// end the process; until then the store answers nothing. It must not wait
	// for the store.
	Fatal func(error)

	// MaxSize bounds the database in bytes, 0 does not. What does not fit is
	// refused as STORAGE_FULL.
	MaxSize int64

	// AnyFileSystem keeps the database where it may not be safe.
	AnyFileSystem bool

	// Warn is told, once each, what an operator has to know though the store
	// works, such as commits that are lost. nil: nobody is told.
	Warn func(string)
}

func (o Options) warn(text string) {
	if o.Warn != nil {
		o.Warn(text)
	}
}

// Store is the database of one data directory, which it holds alone.
type Store struct {
	db     *bolt.DB
	fatal  func(error)
	floor  atomic.Pointer[app.IDBytes]
	broken atomic.Pointer[fault.Error] // why nothing is answered any more
	counts *counter
	flying atomic.Pointer[flight] // the last commit, on the disk or on its way; nil before the first

	// Of the writer (commit.go).
	queue chan *call
	stop  chan struct{} // closed by Close
	ended chan struct{} // closed when the writer has returned

	closing  sync.Once
	closeErr error
}

var _ app.Store = (*Store)(nil)

// Open opens the database at path or creates it, brings it to this version's
// schema, builds the indexes it lacks and starts the writer.
func Open(path string, o Options) (*Store, error) {
	return open(path, o, migrations)
}

func open(path string, o Options, steps []migration) (*Store, error) {
	db, err := openFile(path, o)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	var counts *counter
	var floor app.IDBytes
	err = guarded(func() (err error) {
		floor, err = prepare(db, steps)
		if err == nil {
			err = settleOnDisk(db)
		}
		if err == nil {
			counts, err = newCounter(db, o.warn)
		}
		return err
	})
	if err == nil {
		err = removeLeftovers(path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	s := &Store{
		db:     db,
		fatal:  o.Fatal,
		counts: counts,
		queue:  make(chan *call, maxGroup),
		stop:   make(chan struct{}),
		ended:  make(chan struct{}),
	}
	s.floor.Store(&floor)
	go s.write()
	go counts.run(s.ended)
	return s, nil
}

// Close lets the writer finish what was asked, waits for open transactions
// and gives the file free. What comes later is refused.
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.stop)
		<-s.ended
		<-s.counts.ended
		if err := s.db.Close(); err != nil {
			s.closeErr = fmt.Errorf("close the database: %w", err)
		}
	})
	return s.closeErr
}

// Floor gives the highest ID ever stored, also when its record is gone.
func (s *Store) Floor() app.IDBytes { return *s.floor.Load() }

// View runs fn on one consistent state, beside any writer, and returns when
// that is on the disk. fn copies what it needs and returns soon: until then the
// file can't reuse pages.
func (s *Store) View(ctx context.Context, fn func(app.Tx) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	b, err := s.db.Begin(false)
	if err != nil {
		return s.beginError(err)
	}
	seen := b.ID()
	err = s.read(b, fn)
	if doubt := s.durable(ctx, seen); doubt != nil {
		return doubt // rather than an answer, or a refusal, out of what may not stay
	}
	return err
}

// read runs fn on a read transaction and ends that.
func (s *Store) read(b *bolt.Tx, fn func(app.Tx) error) error {
	t := &tx{bolt: b}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		v := recover()
		t.bolt = nil
		if v != nil && isDamage(v) {
			s.fail(fmt.Errorf("the database is damaged: %v", v))
		}
		_ = b.Rollback() // of a read transaction: it cannot fail
		if v != nil {
			panic(v)
		}
	}()
	return fn(t)
}

// ready says why nothing can be asked now.
func (s *Store) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("wait for the store: %w", context.Cause(ctx))
	}
	if broken := s.broken.Load(); broken != nil {
		return broken
	}
	return nil
}

// beginError tells a store that was closed from one that is lost.
func (s *Store) beginError(err error) error {
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return errClosed()
	}
	return s.fail(fmt.Errorf("begin a transaction: %w", err))
}

func errClosed() error {
	return fault.Errorf(fault.Unavailable, "the service is stopping; try again in a moment")
}

// fail ends the store for good: what is on the disk is no longer known, so no
// answer is better than a doubtful one.
func (s *Store) fail(cause error) error {
	broken := &fault.Error{
		Code:    fault.Internal,
		Message: "the database failed; the service has to be restarted",
		Err:     cause,
	}
	if s.broken.CompareAndSwap(nil, broken) && s.fatal != nil {
		s.fatal(cause)
	}
	return s.broken.Load()
}
