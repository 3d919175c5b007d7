package slurm

import (
	"cmp"
	"sync"
	"time"
)

// health remembers whether the controller answers the commands that run anyway, or whether
// the shared folder can be written. The controller may answer one command and be too slow for
// another.
type health struct {
	mu    sync.Mutex
	asked bool
	since time.Time        // of the last change between answering and not
	errs  map[string]error // why it does not answer, by command
}

// recordResult records the result of a command that asked the controller, or of folderWrite.
func (h *health) recordResult(command string, err error, now time.Time) {
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

func (h *health) err() error {
	return cmp.Or(h.errs["squeue"], h.errs["sinfo"], h.errs[folderWrite])
}

// state returns why there is no answer, nil if there is one, and since when that has been
// so; zero before the first.
func (h *health) state() (since time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since, h.err()
}

// Answers returns why the controller did not answer squeue or sinfo when they were
// last run, nil if it did, and since when that has been so; zero before the first
// answer.
func (c *client) Answers() (since time.Time, err error) { return c.health.state() }
