package events

import "sync"

// Changes lets callers wait for the next change of an object. The zero value is ready for
// use.
type Changes[ID comparable] struct {
	mu      sync.Mutex
	waiting map[ID]*waiters
}

type waiters struct {
	changed chan struct{} // closed by Notify
	count   int
}

// Watch returns a channel that is closed at the next change. The caller must call release
// when no longer interested.
func (c *Changes[ID]) Watch(id ID) (changed <-chan struct{}, release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = map[ID]*waiters{}
	}
	w := c.waiting[id]
	if w == nil {
		w = &waiters{changed: make(chan struct{})}
		c.waiting[id] = w
	}
	w.count++
	return w.changed, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if w.count--; w.count == 0 && c.waiting[id] == w {
			delete(c.waiting, id)
		}
	}
}

// Watched returns the objects that have waiters.
func (c *Changes[ID]) Watched() []ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := make([]ID, 0, len(c.waiting))
	for id := range c.waiting {
		ids = append(ids, id)
	}
	return ids
}

// Notify wakes all waiters of these objects.
func (c *Changes[ID]) Notify(ids ...ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if w := c.waiting[id]; w != nil {
			close(w.changed)
			delete(c.waiting, id)
		}
	}
}
