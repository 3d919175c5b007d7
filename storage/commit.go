package storage

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"molrun/app"
	"molrun/app/fault"
)

// A commit costs two syncs, whether it holds the changes of one caller or of
// a thousand. So one goroutine, the writer, runs the closures of all callers
// and commits for them together. While it commits, the next group gathers.
const (
	maxGroup = 1000

	// Callers that come back after each commit would split into two halves
	// that take turns. So the writer waits for as many as it saw last time,
	// but no longer than this.
	gatherFor = 500 * time.Microsecond

	// Who has not come back within this time is not waited for at all.
	crowdLasts = 2 * time.Millisecond
)

// call is one caller's wish to change something.
type call struct {
	fn    func(app.Tx) error
	state atomic.Int32  // callWaiting until the writer or the caller decides
	done  chan struct{} // closed by the writer when the rest is final

	err      error
	panicked *panicked
	undone   bool // it failed after changes, which were rolled back
	misled   bool // before that it may have seen changes of others, which went too
}

const (
	callWaiting int32 = iota
	callTaken
	callWithdrawn
)

func (c *call) take() bool     { return c.state.CompareAndSwap(callWaiting, callTaken) }
func (c *call) withdraw() bool { return c.state.CompareAndSwap(callWaiting, callWithdrawn) }
func (c *call) failed() bool   { return c.err != nil || c.panicked != nil }

// Update runs fn in the writer's goroutine and returns when its changes are
// on the disk. Where ctx ends before fn was begun, nothing happens; later on
// Update waits for the commit all the same. A panic of fn is the caller's. A
// closure must not call View or Update itself.
func (s *Store) Update(ctx context.Context, fn func(app.Tx) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	c := &call{fn: fn, done: make(chan struct{})}
	select {
	case s.queue <- c:
		c.wait(ctx, s.ended)
	case <-ctx.Done():
		c.withdraw()
	case <-s.ended:
		c.withdraw()
	}
	switch {
	case c.state.Load() == callTaken:
		if c.panicked != nil {
			panic(c.panicked)
		}
		return c.err
	case ctx.Err() != nil:
		return fmt.Errorf("wait for the store: %w", context.Cause(ctx))
	}
	return errClosed()
}

// wait returns when the writer is done with the call or has not begun with it
// and no longer will.
func (c *call) wait(ctx context.Context, ended <-chan struct{}) {
	select {
	case <-c.done:
		return
	case <-ctx.Done():
	case <-ended:
	}
	if !c.withdraw() {
		<-c.done
	}
}

// write is the writer. It lives until Close.
func (s *Store) write() {
	debug.SetPanicOnFault(true)
	stopped := false
	defer func() {
		if !stopped {
			go s.write() // a closure ended this goroutine (runtime.Goexit)
			return
		}
		close(s.ended)
	}()
	crowd, last := 1, time.Time{}
	for !stopped {
		var group []*call
		select {
		case c := <-s.queue:
			if time.Since(last) > crowdLasts {
				crowd = 1
			}
			group = s.gather(c, crowd)
		case <-s.stop:
			stopped = true
			group = s.queued(nil)
		}
		crowd, last = s.settle(group), time.Now()
	}
}

// gather collects a group: all that wait, and up to crowd of those that are
// about to come.
func (s *Store) gather(first *call, crowd int) []*call {
	group := s.queued([]*call{first})
	crowd = min(crowd, maxGroup)
	if len(group) >= crowd {
		return group
	}
	enough := time.NewTimer(gatherFor)
	defer enough.Stop()
	for len(group) < crowd {
		select {
		case c := <-s.queue:
			group = append(group, c)
		case <-enough.C:
			return group
		case <-s.stop:
			return group
		}
	}
	return group
}

// queued adds the calls that wait already.
func (s *Store) queued(group []*call) []*call {
	for len(group) < maxGroup {
		select {
		case c := <-s.queue:
			group = append(group, c)
		default:
			return group
		}
	}
	return group
}

// settle runs the group, in the order of arrival, and tells the callers. It
// gives how many callers there are, counted before they know: one who comes
// back at once would count twice.
func (s *Store) settle(group []*call) (crowd int) {
	taken := make([]*call, 0, len(group))
	for _, c := range group {
		if c.take() {
			taken = append(taken, c)
		}
	}
	defer func() {
		crowd = len(taken) + len(s.queue)
		for _, c := range taken {
			close(c.done)
		}
	}()
	s.finish(taken)
	s.finishMisled(taken)
	return crowd
}

// finish runs the group until every call in it has its answer.
func (s *Store) finish(group []*call) {
	settled := false
	defer func() {
		if !settled { // a closure ended this goroutine
			abandon(group)
		}
	}()
	for !settled {
		settled = s.attempt(group)
	}
}

func abandon(group []*call) {
	for _, c := range group {
		c.err = fault.Errorf(fault.Internal, "a change was abandoned by its program; try again")
	}
}

// finishMisled runs once more, each alone, the calls whose failure may be due
// to a change of another that was then not committed.
func (s *Store) finishMisled(group []*call) {
	var misled []*call
	for _, c := range group {
		if c.misled {
			misled = append(misled, c)
		}
	}
	abandon(misled) // until they have run
	for _, c := range misled {
		c.undone, c.misled = false, false
		s.finish([]*call{c})
	}
}

// attempt runs the group in one transaction. Where a call fails after it has
// changed something, all changes go, since bbolt cannot take back a part; then
// attempt reports false and the others have to run again. A call that fails
// before it has changed anything (as rules do: they check first) costs nothing.
//
// Such a call too hears of its failure only after the commit, since what it
// saw may have been another's change.
func (s *Store) attempt(group []*call) (settled bool) {
	if broken := s.broken.Load(); broken != nil {
		return s.refuse(group, broken)
	}
	b, err := s.db.Begin(true)
	if err != nil {
		return s.refuse(group, s.beginError(err))
	}
	t := &tx{bolt: b}
	defer func() { t.bolt = nil; s.rollback(b) }() // nothing to do after a commit
	for _, c := range group {
		if c.undone {
			continue
		}
		before := t.changes
		if damage := c.run(t); damage != nil {
			return s.refuse(group, s.fail(damage))
		}
		if c.failed() && t.changes > before {
			c.undone, c.misled = true, before > 0
			return false
		}
	}
	if t.changes == 0 {
		return true
	}
	defer s.takeOff(b.ID()).land() // after commitError: by then the store has failed, if it does
	if err := s.commit(t); err != nil {
		return s.refuse(group, s.commitError(err))
	}
	return true
}

// run runs the closure. A panic within it is kept for the caller; one within
// bbolt is damage.
func (c *call) run(t *tx) (damage error) {
	c.err, c.panicked = nil, nil
	defer func() {
		switch v := recover(); {
		case v == nil:
		case isDamage(v):
			damage = fmt.Errorf("the database is damaged: %v", v)
		default:
			c.panicked = newPanicked(v)
		}
	}()
	c.err = c.fn(t)
	return nil
}

// commit makes the changes durable, and with them the floor of IDs.
func (s *Store) commit(t *tx) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the database is damaged: %v", v)
		}
	}()
	top := t.top
	rises := idLess(s.Floor(), top)
	if rises {
		if err := putFloor(t.bolt, top); err != nil {
			return err
		}
	}
	commit := int64(t.bolt.ID())
	if err := t.bolt.Commit(); err != nil {
		return err
	}
	s.counts.note(commit)
	if rises {
		s.floor.Store(&top)
	}
	return nil
}

// refuse gives one error to all whose changes are lost with it.
func (s *Store) refuse(group []*call, err error) (settled bool) {
	for _, c := range group {
		if !c.undone {
			c.err, c.panicked = err, nil
		}
	}
	return true
}

// rollback gives the write lock free, also after a panic of bbolt.
func (s *Store) rollback(b *bolt.Tx) {
	defer func() {
		if v := recover(); v != nil {
			_ = s.fail(fmt.Errorf("the database is damaged: roll back: %v", v))
		}
	}()
	_ = b.Rollback() // its one error says that the transaction is over
}
