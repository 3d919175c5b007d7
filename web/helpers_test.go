package web_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"molrun/app/test/must"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func sha256Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// same fails the test unless got equals want.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	must.Equal(t, what, got, want)
}

// contains requires text to contain each of parts.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		must.Contain(t, "the text", text, part)
	}
}

// template converts a gin path to an OpenAPI path.
func template(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if p != "" && strings.ContainsRune(":*", rune(p[0])) {
			parts[i] = "{" + p[1:] + "}"
		}
	}
	return strings.Join(parts, "/")
}

// clock is a manual clock.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// escaped percent-encodes every byte.
func escaped(name string) string {
	out := ""
	for i := range len(name) {
		out += fmt.Sprintf("%%%02X", name[i])
	}
	return out
}
