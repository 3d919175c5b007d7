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

// A commit costs two syncs, for the changes of one caller or of a thousand. So
// one goroutine, the writer, runs the closures of all callers and commits them
// as a group. During a commit the next group gathers.
const (
	maxGroup = 1000

	// Callers that come back after each commit would split into two groups that
	// alternate. So the writer waits for as many callers as last time, but no
	// longer than this.
	gatherFor = 500 * time.Microsecond

	// After a pause of this length the writer does not wait for further changes.
	expectFor = 2 * time.Millisecond
)

// writer runs the calls of Update. All fields but the channels and the atomic
// ones are its goroutine's.
type writer struct {
	file    *bolt.DB
	schema  *Schema
	health  *health
	commits *boltfile.Counter
	place   boltfile.Place
	floor   atomic.Pointer[sortid.ID]
	last    lastCommit
	notify  atomic.Pointer[func([]events.Entry)]
	watch   atomic.Pointer[func(Commit)]
	queue   chan *call
	stop    chan struct{} // closed by Close
	ended   chan struct{} // closed when run has returned for good
}

func newWriter(file *bolt.DB, s *Schema, h *health, commits *boltfile.Counter, place boltfile.Place, floor sortid.ID) *writer {
	w := &writer{
		file: file, schema: s, health: h, commits: commits, place: place,
		queue: make(chan *call, maxGroup),
		stop:  make(chan struct{}),
		ended: make(chan struct{}),
	}
	w.floor.Store(&floor)
	return w
}

// commitGroups commits group after group until Close.
func (w *writer) commitGroups() {
	debug.SetPanicOnFault(true)
	stopped := false
	defer func() {
		if !stopped {
			go w.commitGroups() // a closure ended this goroutine (runtime.Goexit)
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

// gather collects the calls in the queue and waits for more, up to the expected
// number.
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

// queued appends the calls in the queue.
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

// runGroup runs the calls in the order of arrival and wakes the callers. It
// returns how many callers to expect next, counted before they wake: one that
// comes back at once would count twice.
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
	abandon(suspects) // unless they run: a closure may end the goroutine
	for _, c := range suspects {
		c.rolledBack, c.suspect = false, false
		w.execute([]*call{c}) // alone
	}
	return expected
}

// execute runs the group until every call in it has its result.
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
		c.err = fault.Errorf(fault.Internal, "a change was abandoned by its program; try again")
	}
}

// transact runs the group in one transaction. If a call fails after a change,
// everything is rolled back, since bbolt can't undo a part; then transact returns
// false, and the others have to run again. A call that fails before it has
// changed anything costs nothing: rules check first. It, too, gets its error
// only after the commit, since it may have seen changes of others.
func (w *writer) transact(group []*call) (done bool) {
	if err := w.health.err(); err != nil {
		return refuse(group, err)
	}
	b, err := w.file.Begin(true)
	if err != nil {
		return refuse(group, w.health.beginError(err))
	}
	t := &Tx{bolt: b, schema: w.schema}
	defer func() { t.bolt = nil; w.rollback(b) }() // does nothing after a commit
	for _, c := range group {
		if c.rolledBack {
			continue
		}
		before := t.changes
		if damage := c.run(t); damage != nil {
			return refuse(group, w.health.fail(damage))
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
	defer close(current.done) // after commitError, which may mark the database as failed
	begin := time.Now()
	err = w.commit(t)
	if watch := w.watch.Load(); watch != nil {
		(*watch)(Commit{Calls: len(group), Took: time.Since(begin), Err: err})
	}
	if err != nil {
		return refuse(group, w.health.commitError(err))
	}
	return true
}

// run runs the closure in the writer's goroutine. It keeps a panic of the
// closure for the caller; a panic of bbolt is returned as damage.
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
	Calls int           // of Update that share it
	Took  time.Duration // until it was durable, or had failed
	Err   error
}

// commit makes the changes, the notes and the floor durable.
func (w *writer) commit(t *Tx) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = damagedError(v)
		}
	}()
	highest := t.highest
	rises := idLess(*w.floor.Load(), highest)
	if rises {
		if err := putFloor(t.bolt, highest); err != nil {
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
		return err // durable, but not where the next start looks
	}
	w.commits.Note(number)
	if rises {
		w.floor.Store(&highest)
	}
	if notify := w.notify.Load(); notify != nil && len(noted) > 0 {
		(*notify)(noted)
	}
	return nil
}

// refuse gives one error to all calls whose changes are lost.
func refuse(group []*call, err error) (done bool) {
	for _, c := range group {
		if !c.rolledBack {
			c.err, c.panicked = err, nil
		}
	}
	return true
}

// rollback releases the write lock, even after a panic of bbolt.
func (w *writer) rollback(b *bolt.Tx) {
	defer func() {
		if v := recover(); v != nil {
			_ = w.health.fail(fmt.Errorf("the database is damaged: roll back: %v", v))
		}
	}()
	_ = b.Rollback() // its only error says that the transaction has ended
}
