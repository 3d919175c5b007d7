package app

import (
	"maps"
	"sync"
)

// liveStates are the volatile states of jobs, kept in memory only: the progress
// of running ones, and why queued ones wait.
type liveStates struct {
	mu       sync.Mutex
	progress map[JobID]Progress
	reasons  map[JobID]string
}

func (l *liveStates) setProgress(id JobID, p *Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p == nil {
		delete(l.progress, id)
		return
	}
	if l.progress == nil {
		l.progress = map[JobID]Progress{}
	}
	l.progress[id] = *p
}

func (l *liveStates) setReasons(reasons map[JobID]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reasons = maps.Clone(reasons)
}

// changes lets callers wait for the next change of a job.
type changes struct {
	mu      sync.Mutex
	waiting map[JobID]*waiters
}

type waiters struct {
	changed chan struct{} // closed by notify
	count   int
}

// watch returns a channel that is closed at the job's next change. Call release
// when no longer interested.
func (c *changes) watch(id JobID) (changed <-chan struct{}, release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = map[JobID]*waiters{}
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

// watched lists the jobs whose changes somebody waits for.
func (c *changes) watched() []JobID {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := make([]JobID, 0, len(c.waiting))
	for id := range c.waiting {
		ids = append(ids, id)
	}
	return ids
}

// notify wakes those who wait for a change of these jobs.
func (c *changes) notify(ids ...JobID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if w := c.waiting[id]; w != nil {
			close(w.changed)
			delete(c.waiting, id)
		}
	}
}
