package kv

import (
	"runtime/debug"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"molrun/app"
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

	// After a pause of this length the writer waits for nobody.
	expectFor = 2 * time.Millisecond
)

// writer runs the calls of Update. All fields but the channels and the atomic
// ones are its goroutine's.
type writer struct {
	file    *bolt.DB
	schema  *Schema
	health  *health
	commits *boltfile.Counter
	floor   atomic.Pointer[app.IDBytes]
	last    lastCommit
	queue   chan *call
	stop    chan struct{} // closed by Close
	ended   chan struct{} // closed when run has returned for good
}

func newWriter(file *bolt.DB, s *Schema, h *health, commits *boltfile.Counter, floor app.IDBytes) *writer {
	w := &writer{
		file: file, schema: s, health: h, commits: commits,
		queue: make(chan *call, maxGroup),
		stop:  make(chan struct{}),
		ended: make(chan struct{}),
	}
	w.floor.Store(&floor)
	return w
}

// run commits group after group until Close.
func (w *writer) run() {
	debug.SetPanicOnFault(true)
	stopped := false
	defer func() {
		if !stopped {
			go w.run() // a closure ended this goroutine (runtime.Goexit)
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
