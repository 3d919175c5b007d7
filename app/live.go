package app

import (
	"maps"
	"sync"
	"time"

	"molrun/app/eta"
)

// liveStates are the volatile states of jobs, kept in memory only: the progress
// of running ones, and why queued ones wait.
type liveStates struct {
	mu       sync.Mutex
	progress map[JobID]Progress
	reasons  map[JobID]eta.Reason
	outlooks map[string]Outlook // by executor; the map is never changed
}

// Outlook says where the jobs of an executor's queue stand.
type Outlook interface {
	// Queue returns the place of a job, and why it waits as far as that follows
	// from its place; false if it does not know the job.
	Queue(id JobID, now time.Time) (eta.Queue, eta.Reason, bool)
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

func (l *liveStates) setReasons(reasons map[JobID]eta.Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reasons = maps.Clone(reasons)
}

func (l *liveStates) setOutlook(executor string, o Outlook) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]Outlook{}
	maps.Copy(all, l.outlooks)
	all[executor] = o
	l.outlooks = all
}

// waiting returns why a queued job waits, and its place in the queue.
func (l *liveStates) waiting(id JobID, now time.Time) (why eta.Reason, q eta.Queue) {
	l.mu.Lock()
	outlooks := l.outlooks
	why, known := l.reasons[id]
	l.mu.Unlock()
	for _, o := range outlooks {
		place, rest, ok := o.Queue(id, now)
		if !ok {
			continue
		}
		if q = place; !known {
			why = rest
		}
	}
	q.BlockedBy = why.By
	return why, q
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
