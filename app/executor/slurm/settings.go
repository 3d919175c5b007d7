package slurm

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"time"
)

const (
	// defaultArraySize is Slurm's default of MaxArraySize.
	defaultArraySize = 1001
	// settingsTTL is how long the controller's settings are cached, and
	// settingsFailureTTL how long a failure to read them is.
	settingsTTL        = 10 * time.Minute
	settingsFailureTTL = time.Minute
)

// siteSettings caches the output of scontrol show config.
type siteSettings struct {
	known   map[string]string
	failure error
	asked   time.Time
}

// Settings returns the controller's settings, as printed by scontrol show config.
func (c *client) Settings(ctx context.Context) (map[string]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.settings
	age := time.Since(s.asked)
	if s.known != nil && age < settingsTTL || s.failure != nil && age < settingsFailureTTL {
		return maps.Clone(s.known), s.failure
	}
	text, err := c.runCommand(ctx, "", "scontrol", "show", "config")
	s.known, s.failure, s.asked = nil, err, time.Now()
	if err == nil {
		s.known = parseSettings(text)
	}
	return maps.Clone(s.known), s.failure
}

// ForgetSettings makes the next call of Settings query the controller.
func (c *client) ForgetSettings() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settings = siteSettings{}
}

// parseSettings parses lines such as "MinJobAge = 300 sec".
func parseSettings(text string) map[string]string {
	settings := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, "="); ok {
			settings[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return settings
}

// ArraySize returns the maximum number of tasks in an array. Indexes must be below
// MaxArraySize, and ours begin at 1. If the controller does not respond, it returns the
// default.
func (c *client) ArraySize(ctx context.Context) int {
	settings, err := c.Settings(ctx)
	if err != nil {
		return defaultArraySize - 1
	}
	size, ok := leadingNumber(settings["MaxArraySize"])
	if !ok {
		size = defaultArraySize
	}
	return max(1, size-1)
}

// leadingNumber parses the number of a setting such as "300 sec".
func leadingNumber(text string) (int, bool) {
	first, _, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(first)
	return n, err == nil
}
