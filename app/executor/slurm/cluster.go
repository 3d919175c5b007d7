package slurm

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// usualArraySize is MaxArraySize where the site does not set it.
	usualArraySize = 1001
	// settingsAge is how long what the controller said of its settings holds, and
	// silenceAge how long that it said nothing.
	settingsAge = 10 * time.Minute
	silenceAge  = time.Minute
)

// cluster is what the controller says of its own settings.
type cluster struct {
	slurm *commands

	mu      sync.Mutex
	known   map[string]string
	failure error
	asked   time.Time
}

// settings gives the controller's settings, as scontrol show config does.
func (c *cluster) settings(ctx context.Context) (map[string]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	age := time.Since(c.asked)
	if c.known != nil && age < settingsAge || c.failure != nil && age < silenceAge {
		return c.known, c.failure
	}
	text, err := c.slurm.run(ctx, "", "scontrol", "show", "config")
	c.known, c.failure, c.asked = nil, err, time.Now()
	if err == nil {
		c.known = parseSettings(text)
	}
	return c.known, c.failure
}

// parseSettings reads lines such as "MinJobAge               = 300 sec".
func parseSettings(text string) map[string]string {
	settings := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, "="); ok {
			settings[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return settings
}

// arraySize is how many tasks an array may have. Indexes are below
// MaxArraySize, and ours begin at 1. A controller that does not say it is
// taken for a usual one.
func (c *cluster) arraySize(ctx context.Context) int {
	settings, err := c.settings(ctx)
	if err != nil {
		return usualArraySize - 1
	}
	size, ok := leadingNumber(settings["MaxArraySize"])
	if !ok {
		size = usualArraySize
	}
	return max(1, size-1)
}

// leadingNumber reads "300 sec" as 300.
func leadingNumber(text string) (int, bool) {
	first, _, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(first)
	return n, err == nil
}
