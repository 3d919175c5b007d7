package slurm

import (
	"sync"
	"time"
)

// health remembers whether the controller answers, by the calls that are made
// anyway.
type health struct {
	mu    sync.Mutex
	asked bool
	since time.Time // when it last began or ceased to answer
	err   error     // why it does not
}

// note takes the end of a call of the controller.
func (h *health) note(err error, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.asked || (err == nil) != (h.err == nil) {
		h.since = now
	}
	h.asked, h.err = true, err
}

// Answers reports whether the controller answered when it was last asked, which
// is at least once a minute, since when that is so, and why it does not. Before
// the first answer the time is zero.
func (e *Executor) Answers() (since time.Time, err error) {
	h := &e.slurm.health
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since, h.err
}
