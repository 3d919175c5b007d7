package cli

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// common is a server that many tests use at once, each in organizations of its
// own. A test that needs a configuration of its own, looks into the data
// directory, or stops the server starts one for itself.
type common struct {
	config string
	busy   bool // a job keeps the only CPU, so that all others stay QUEUED

	once    sync.Once
	server  *instance
	tenants atomic.Int64
}

var (
	plainServer = common{config: "[runner]\ncpus = 32\nmemory = \"32GiB\"\n"}
	busyServer  = common{config: "[runner]\ncpus = 1\n", busy: true}
)

// plain gives the test its organizations on a server whose jobs start at once.
func plain(t *testing.T) *instance {
	t.Helper()
	return plainServer.open(t)
}

// busy gives the test its organizations on a server where no job starts.
func busy(t *testing.T) *instance {
	t.Helper()
	return busyServer.open(t)
}

// open starts the server for the first test that wants it.
func (c *common) open(t *testing.T) *instance {
	t.Helper()
	c.once.Do(func() { c.start(t) })
	if c.server == nil {
		t.Fatal("the common server did not start for another test")
	}
	s := &instance{
		t: t, dir: c.server.dir, base: c.server.base, process: c.server.process, log: c.server.log, exited: c.server.exited,
		said: c.server.said, secrets: c.server.secrets, http: checkedClient(t), tenant: fmt.Sprintf("-%d", c.tenants.Add(1)),
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the log of the common server:\n%s", s.tail())
		}
	})
	return s
}

func (c *common) start(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "molrun-cli-")
	must(t, err)
	s := &instance{t: t, dir: dir, shared: true, said: &logBuffer{}, secrets: &confidential{}, http: checkedClient(t)}
	s.layOut(serverOptions{config: c.config, algorithms: map[string]string{"shell.toml": shellFile, "words.toml": wordsFile}})
	s.start()
	if c.busy {
		s.hold("hold")
	}
	c.server = s
}

// close ends the server and reports what its logs must not tell.
func (c *common) close() error {
	s := c.server
	if s == nil {
		return nil
	}
	s.kill()
	s.killTasks()
	if err := s.indiscretions(); err != nil {
		return fmt.Errorf("the common server of %d tests: %w", c.tenants.Load(), err)
	}
	return os.RemoveAll(s.dir)
}
