package client

import (
	"sync"
	"time"
)

// health remembers whether the controller answers the commands that run anyway.
type health struct {
	mu    sync.Mutex
	asked bool
	since time.Time // of the last change between answering and not
	err   error     // why it does not answer
}

// note records the result of a command that asked the controller.
func (h *health) note(err error, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.asked || (err == nil) != (h.err == nil) {
		h.since = now
	}
	h.asked, h.err = true, err
}

// Answers returns why the controller did not answer when it was last asked, nil
// if it did, and since when that has been so; zero before the first answer.
func (c *Client) Answers() (since time.Time, err error) {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	return c.health.since, c.health.err
}
