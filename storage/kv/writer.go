package kv

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"molrun/app/base/events"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/storage/kv/boltfile"
)

// A commit costs two syncs, whether for the changes of one caller or a thousand. So a
// single goroutine, the writer, runs the closures of all callers and commits them as a
// group. The next group forms during a commit.
const (
	maxGroup = 1000

	// Callers that return after each commit would split into two alternating groups. So
	// the writer waits for as many callers as last time, but no longer than this.
	gatherFor = 500 * time.Microsecond

	// After a pause of this length the writer does not wait for further changes.
	expectFor = 2 * time.Millisecond
)

// writer runs the calls of Update. All fields except channels and atomics belong to its
// goroutine.
type writer struct {
	file          *bolt.DB
	schema        *Schema
	health        *health
	commits       *boltfile.Counter
	place         boltfile.Location
	highWaterMark atomic.Pointer[sortid.ID]
	last          lastCommit
	notify        atomic.Pointer[func([]events.Entry)]
	watch         atomic.Pointer[func(Commit)]
	queue         chan *call
	stop          chan struct{} // closed by Close
	ended         chan struct{} // closed when commitGroups has finally returned
}

func newWriter(file *bolt.DB, s *Schema, h *health, commits *boltfile.Counter, place boltfile.Location, highWaterMark sortid.ID) *writer {
	w := &writer{
		file: file, schema: s, health: h, commits: commits, place: place,
		queue: make(chan *call, maxGroup),
		stop:  make(chan struct{}),
		ended: make(chan struct{}),
	}
	w.highWaterMark.Store(&highWaterMark)
	return w
}

// commitGroups commits groups until Close.
func (w *writer) commitGroups() {
	debug.SetPanicOnFault(true)
	stopped := false
	defer func() {
		if !stopped {
			go w.commitGroups() // a closure called runtime.Goexit
			return
		}
		close(w.ended)
	}()
	expected, last := 1, time.Time{}
	for !stopped {
		var group []*call
		select {
		case c := <-w.queue:
			if time.Since(last) > expectFor {
				expected = 1
			}
			group = w.gather(c, expected)
		case <-w.stop:
			stopped = true
			group = w.queued(nil)
		}
		expected, last = w.runGroup(group), time.Now()
	}
}

// gather collects the queued calls and waits for more, up to the expected number.
func (w *writer) gather(first *call, expected int) []*call {
	group := w.queued([]*call{first})
	expected = min(expected, maxGroup)
	if len(group) >= expected {
		return group
	}
	enough := time.NewTimer(gatherFor)
	defer enough.Stop()
	for len(group) < expected {
		select {
		case c := <-w.queue:
			group = append(group, c)
		case <-enough.C:
			return group
		case <-w.stop:
			return group
		}
	}
	return group
}

// queued appends the queued calls to group.
func (w *writer) queued(group []*call) []*call {
	for len(group) < maxGroup {
		select {
		case c := <-w.queue:
			group = append(group, c)
		default:
			return group
		}
	}
	return group
}

// runGroup runs the calls in order of arrival and wakes the callers. It returns the
// number of callers to expect next, counted before they wake: one that returns
// immediately would be counted twice.
func (w *writer) runGroup(group []*call) (expected int) {
	taken := make([]*call, 0, len(group))
	for _, c := range group {
		if c.state.CompareAndSwap(callWaiting, callTaken) {
			taken = append(taken, c)
		}
	}
	defer func() {
		expected = len(taken) + len(w.queue)
		for _, c := range taken {
			close(c.done)
		}
	}()
	w.execute(taken)

	var suspects []*call
	for _, c := range taken {
		if c.suspect {
			suspects = append(suspects, c)
		}
	}
	abandon(suspects) // default result: a closure could end the goroutine
	for _, c := range suspects {
		c.rolledBack, c.suspect = false, false
		w.execute([]*call{c}) // in a separate transaction
	}
	return expected
}

// execute runs the group until every call has a result.
func (w *writer) execute(group []*call) {
	done := false
	defer func() {
		if !done { // a closure ended this goroutine
			abandon(group)
		}
	}()
	for !done {
		done = w.transact(group)
	}
}

func abandon(group []*call) {
	for _, c := range group {
		c.err = fault.Errorf(fault.Internal, "a change was aborted; try again")
	}
}

// transact runs the group in one transaction. If a call fails after a change, everything
// is rolled back, since bbolt cannot undo part of a transaction; transact then returns
// false, and the other calls must run again. A call that fails before changing anything,
// as most do since rules are checked first, needs no rollback. It, too, gets its error
// only after the commit, since it could have seen changes of others.
func (w *writer) transact(group []*call) (done bool) {
	if err := w.health.err(); err != nil {
		return failAll(group, err)
	}
	b, err := w.file.Begin(true)
	if err != nil {
		return failAll(group, w.health.beginError(err))
	}
	t := &Tx{bolt: b, schema: w.schema}
	defer func() { t.bolt = nil; w.rollback(b) }() // no-op after a commit
	for _, c := range group {
		if c.rolledBack {
			continue
		}
		before := t.changes
		if damage := c.run(t); damage != nil {
			return failAll(group, w.health.fail(damage))
		}
		if (c.err != nil || c.panicked != nil) && t.changes > before {
			c.rolledBack, c.suspect = true, before > 0
			return false
		}
	}
	if t.changes == 0 {
		return true
	}
	current := w.last.beginCommit(b.ID())
	defer close(current.done) // after commitError, which can mark the database as failed
	begin := time.Now()
	err = w.commit(t)
	if watch := w.watch.Load(); watch != nil {
		(*watch)(Commit{Calls: len(group), Took: time.Since(begin), Err: err})
	}
	if err != nil {
		return failAll(group, w.health.commitError(err))
	}
	return true
}

// run runs the closure in the writer's goroutine. It saves a panic of the closure for the
// caller; a panic in bbolt is returned as damage.
func (c *call) run(t *Tx) (damage error) {
	c.err, c.panicked = nil, nil
	defer func() {
		switch v := recover(); {
		case v == nil:
		case boltfile.IsDamage(v):
			damage = damagedError(v)
		default:
			c.panicked = &panicked{v, debug.Stack()}
		}
	}()
	c.err = c.fn(t)
	return nil
}

// Commit describes one commit.
type Commit struct {
	Calls int           // number of Update calls that share the commit
	Took  time.Duration // time until it was durable or failed
	Err   error
}

// commit makes the changes, the notes and the high-water mark durable.
func (w *writer) commit(t *Tx) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = damagedError(v)
		}
	}()
	highest := t.highest
	rises := idLess(*w.highWaterMark.Load(), highest)
	if rises {
		if err := putHighWaterMark(t.bolt, highest); err != nil {
			return err
		}
	}
	noted, err := t.writeNotes()
	if err != nil {
		return err
	}
	number := int64(t.bolt.ID())
	if err := t.bolt.Commit(); err != nil {
		return err
	}
	if err := w.place.Check(); err != nil {
		return err // durable, but not where the next start looks for it
	}
	w.commits.Note(number)
	if rises {
		w.highWaterMark.Store(&highest)
	}
	if notify := w.notify.Load(); notify != nil && len(noted) > 0 {
		(*notify)(noted)
	}
	return nil
}

// failAll sets err as the result of all calls whose changes are lost.
func failAll(group []*call, err error) (done bool) {
	for _, c := range group {
		if !c.rolledBack {
			c.err, c.panicked = err, nil
		}
	}
	return true
}

// rollback releases the write lock, even if bbolt panics.
func (w *writer) rollback(b *bolt.Tx) {
	defer func() {
		if v := recover(); v != nil {
			_ = w.health.fail(fmt.Errorf("the database is damaged: roll back: %v", v))
		}
	}()
	_ = b.Rollback() // its only error means that the transaction has ended
}
