// Package flock keeps count of the pilots of a runner: processes that run short rows of a
// batch one after the other.
//
// On a cluster, pilots wait in its queue. Further ones of a kind gain nothing meanwhile:
// their rows are better left to those that run first.
package flock

import (
	"sync"

	"molrun/app/runner/schedule"
)

// mostWaiting is how many pilots of one kind may wait in a cluster's queue, or as many as
// run: so their number doubles as long as the cluster has room for them.
const mostWaiting = 8

// Kind is what pilots have in common whose rows could change places: the executor, the
// user, and the class of comparable runs.
type Kind struct {
	Executor string
	User     schedule.User
	Class    string
}

// Flock is the pilots of a runner, by name. Its methods may be called concurrently.
type Flock struct {
	mu     sync.Mutex
	pilots map[string]*member
	kinds  map[Kind]*count
}

type member struct {
	Kind
	runs bool
}

type count struct{ waiting, running int }

// New returns an empty Flock.
func New() *Flock { return &Flock{pilots: map[string]*member{}, kinds: map[Kind]*count{}} }

// Add adds a pilot, however many there are.
func (f *Flock) Add(id string, k Kind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(id, k)
}

// Enter adds a pilot unless too many of its kind wait.
func (f *Flock) Enter(id string, k Kind) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.kinds[k]; c != nil && c.places() <= 0 {
		return false
	}
	f.add(id, k)
	return true
}

func (f *Flock) add(id string, k Kind) {
	f.pilots[id] = &member{Kind: k}
	if f.kinds[k] == nil {
		f.kinds[k] = &count{}
	}
	f.kinds[k].waiting++
}

func (c *count) places() int { return max(mostWaiting, c.running) - c.waiting }

// Runs notes that a pilot was seen running.
func (f *Flock) Runs(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.pilots[id]; m != nil && !m.runs {
		m.runs = true
		c := f.kinds[m.Kind]
		c.waiting--
		c.running++
	}
}

// Remove removes a pilot, if it is there.
func (f *Flock) Remove(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.pilots[id]
	if m == nil {
		return
	}
	delete(f.pilots, id)
	c := f.kinds[m.Kind]
	if m.runs {
		c.running--
	} else {
		c.waiting--
	}
	if *c == (count{}) {
		delete(f.kinds, m.Kind)
	}
}

// Has reports whether there is a pilot of that name.
func (f *Flock) Has(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pilots[id] != nil
}

// Places returns how many more pilots of a kind may be added. It is false if the kind has
// none, as that of jobs which take long.
func (f *Flock) Places(k Kind) (int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.kinds[k]
	if c == nil {
		return 0, false
	}
	return c.places(), true
}
