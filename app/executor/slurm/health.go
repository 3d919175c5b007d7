package slurm

import (
	"cmp"
	"sync"
	"time"
)

// controllerHealth remembers whether the controller answers the commands that run anyway. It
// may answer one and be too slow for another.
type controllerHealth struct {
	mu    sync.Mutex
	asked bool
	since time.Time        // of the last change between answering and not
	errs  map[string]error // why it does not answer, by command
}

// note records the result of a command that asked the controller.
func (h *controllerHealth) note(command string, err error, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.err()
	if h.errs == nil {
		h.errs = map[string]error{}
	}
	h.errs[command] = err
	if !h.asked || (before == nil) != (h.err() == nil) {
		h.since = now
	}
	h.asked = true
}

func (h *controllerHealth) err() error { return cmp.Or(h.errs["squeue"], h.errs["sinfo"]) }

// Answers returns why the controller did not answer squeue or sinfo when they were
// last run, nil if it did, and since when that has been so; zero before the first
// answer.
func (c *client) Answers() (since time.Time, err error) {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	return c.health.since, c.health.err()
}
