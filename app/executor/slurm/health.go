package slurm

import (
	"cmp"
	"sync"
	"time"
)

// health records whether the controller responds to commands, or whether the shared
// folder is writable. The controller may respond to one command and be too slow for
// another.
type health struct {
	mu    sync.Mutex
	asked bool
	since time.Time        // time of the last change between responding and not
	errs  map[string]error // why it does not respond, by command
}

// recordResult records the result of a command that queried the controller, or of
// folderWrite.
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

// state returns why there is no response, nil if there is one, and the time of the last
// change; zero before the first result.
func (h *health) state() (since time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since, h.err()
}

// Answers returns why the controller did not respond to the last squeue or sinfo, nil if
// it did, and the time of the last change; zero before the first result.
func (c *client) Answers() (since time.Time, err error) { return c.health.state() }
