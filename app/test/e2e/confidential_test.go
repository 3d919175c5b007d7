package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"molrun/app/job/audit"
)

// confidential collects strings that must not appear in any log: API key secrets, and the
// settings and file contents that clients sent to or received from a server.
type confidential struct {
	mu    sync.Mutex
	texts []string
}

// shortest is the length of the shortest string to search for. Short ones such as "true"
// occur in every log, and identifiers may be logged.
const shortest = 16

var identifier = regexp.MustCompile(`^[0-9A-Z]{26}$`)

func (c *confidential) add(texts ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range texts {
		if len(text) >= shortest && !identifier.MatchString(text) {
			c.texts = append(c.texts, text)
		}
	}
}

var (
	wholeKey  = regexp.MustCompile(`molrun_[a-z]{12}_([0-9A-Za-z]{43})_[0-9A-Za-z]{6}`)
	anySecret = regexp.MustCompile(wholeKey.String() + `|eyJ[0-9A-Za-z_-]{10,}\.|[?&]token=`)
)

// keys adds the secrets of the keys in a command's output.
func (c *confidential) keys(printed string) {
	for _, key := range wholeKey.FindAllStringSubmatch(printed, -1) {
		c.add(key[1])
	}
}

// settings adds all strings in the settings of a submission.
func (c *confidential) settings(body string) {
	var sent struct{ Settings any }
	if json.Unmarshal([]byte(body), &sent) == nil {
		c.leaves(sent.Settings)
	}
}

func (c *confidential) leaves(value any) {
	switch v := value.(type) {
	case string:
		c.add(v)
	case []any:
		for _, item := range v {
			c.leaves(item)
		}
	case map[string]any:
		for _, item := range v {
			c.leaves(item)
		}
	}
}

// leaks returns the confidential strings, keys and tokens in a log, each with some
// context.
func (c *confidential) leaks(log string) (found []string) {
	for _, at := range anySecret.FindAllStringIndex(log, -1) {
		found = append(found, around(log, at[0]))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.texts)
	c.texts = slices.Compact(c.texts)
	for _, text := range c.texts {
		quoted, _ := json.Marshal(text) // a string always marshals
		for _, form := range []string{text, string(quoted[1 : len(quoted)-1])} {
			if i := strings.Index(log, form); i >= 0 {
				found = append(found, around(log, i))
				break
			}
		}
	}
	return found
}

// raceReport is the first line of a report by the race detector.
const raceReport = "WARNING: DATA RACE"

func around(text string, i int) string {
	return "…" + text[max(0, i-200):min(len(text), i+100)] + "…"
}

// checkLogs stops the server and searches its logs and the standard error of its commands
// for leaks. It runs for every server of every test.
func (s *instance) checkLogs() {
	s.kill()
	if err := s.leaksInLogs(); err != nil {
		s.t.Error(err)
	}
}

// leaksInLogs reports leaks and data races in the logs of a server and its
// commands.
func (s *instance) leaksInLogs() error {
	logs := map[string]string{"standard error of commands": s.stderr.String()}
	for i, log := range s.logs {
		logs[fmt.Sprintf("the log of start %d", i+1)] = log.String()
	}
	audits, err := filepath.Glob(filepath.Join(s.data(), audit.Name+"*"))
	all := []error{err}
	for _, name := range audits {
		text, err := os.ReadFile(name)
		all = append(all, err)
		logs[filepath.Base(name)] = string(text)
	}
	for name, log := range logs {
		for _, leak := range s.secrets.leaks(log) {
			all = append(all, fmt.Errorf("%s contains confidential text: %s", name, leak))
		}
		if strings.Contains(log, raceReport) {
			all = append(all, fmt.Errorf("%s reports a data race:\n%s", name, log))
		}
	}
	return errors.Join(all...)
}

func TestLeaksInLogsAreFound(t *testing.T) {
	t.Parallel()
	key, _, _ := strings.Cut("molrun_abcdefghijkl_"+strings.Repeat("k", 43)+"_123456 and more", " ")
	var c confidential
	c.keys("your key is " + key + "\n")
	c.settings(`{"jobName":"j","settings":{"chains":[{"sequence":"MKTAYIAKQRQISFVK"}],"note":"two\nlines, <quoted>"}}`)
	c.add("line of the file", "short")
	for _, tt := range []struct {
		log   string
		leaks int
	}{
		{`{"message":"started","job":"j","key":"abcdefghijkl","request":"MKTAYIAKQRQISFV"}`, 0},
		{"short", 0},
		{"key " + key, 2}, // found as any key, and as a key of a user
		{"another molrun_mnopqrstuvwx_" + strings.Repeat("x", 43) + "_654321", 1},
		{"the secret alone " + strings.Repeat("k", 43), 1},
		{`{"path":"/blobs/x/a.txt?token=eyJhbGciOiJIUzI1NiJ9.e30.x"}`, 2},
		{`{"err":"not MKTAYIAKQRQISFVK"}`, 1},
		{`{"err":"two\nlines, \u003cquoted\u003e"}`, 1},
		{"the line of the file", 1},
	} {
		if got := c.leaks(tt.log); len(got) != tt.leaks {
			t.Errorf("leaks in %q: %q, want %d", tt.log, got, tt.leaks)
		}
	}
}
