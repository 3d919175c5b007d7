package kv

import (
	"fmt"

	bolt "go.etcd.io/bbolt"

	"molrun/app/fault"
)

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
	current := w.last.begin(b.ID())
	defer close(current.done) // after commitError, which may mark the database as failed
	if err := w.commit(t); err != nil {
		return refuse(group, w.health.commitError(err))
	}
	return true
}

// commit makes the changes and the floor durable.
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
	number := int64(t.bolt.ID())
	if err := t.bolt.Commit(); err != nil {
		return err
	}
	w.commits.Note(number)
	if rises {
		w.floor.Store(&highest)
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
