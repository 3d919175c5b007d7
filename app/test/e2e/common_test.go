package e2e

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"molrun/app/test/must"
	"molrun/app/test/whole"
)

// common is a server shared by many tests, each with its own organizations. A test that
// needs its own configuration, inspects the data directory or stops the server must start
// its own.
type common struct {
	config string

	once    sync.Once
	server  *instance
	tenants atomic.Int64
}

var plainServer = common{config: "[runner]\ncpus = 32\nmemory = \"32GiB\"\n"}

// commonTypes returns the algorithm files of the shared servers, by file name.
func commonTypes() map[string]string {
	drawn := strings.Replace(shellFile, `type = "shell"`, `type = "drawn"`, 1) + seriesView
	return map[string]string{
		"shell.toml": shellFile, "words.toml": wordsFile, "measure.toml": measureFile, "superpose.toml": superposeFile,
		"sized.toml": sizedFile, "opens.toml": opensFile, "bare.toml": bareFile, "drawn.toml": drawn,
		"curious.toml": strings.ReplaceAll(curiousFile, "@PID@", fmt.Sprint(os.Getpid())), "maker.toml": makerFile, "reader.toml": readerFile, "old.toml": oldMaker,
	}
}

// plain returns the shared server whose jobs start immediately.
func plain(t *testing.T) *instance {
	t.Helper()
	return plainServer.open(t)
}

// open returns the server, and starts it for the first test that needs it.
func (c *common) open(t *testing.T) *instance {
	t.Helper()
	c.once.Do(func() { c.start(t) })
	if c.server == nil {
		t.Fatal("the shared server failed to start in another test")
	}
	s := &instance{
		t: t, dir: c.server.dir, base: c.server.base, process: c.server.process, log: c.server.log, exited: c.server.exited,
		stderr: c.server.stderr, secrets: c.server.secrets, http: checkedClient(t), tenant: fmt.Sprintf("-%d", c.tenants.Add(1)),
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the shared server's log:\n%s", s.log.Tail())
		}
	})
	return s
}

func (c *common) start(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "molrun-e2e-")
	must.OK(t, err)
	s := &instance{t: t, dir: dir, shared: true, stderr: &whole.Log{}, secrets: &confidential{}, http: checkedClient(t)}
	s.writeFiles(serverOptions{config: c.config, algorithms: commonTypes()})
	s.start()
	c.server = s
}

// close stops the server and reports leaks in its logs.
func (c *common) close() error {
	s := c.server
	if s == nil {
		return nil
	}
	s.kill()
	s.killTasks()
	if err := s.leaksInLogs(); err != nil {
		return fmt.Errorf("the shared server of %d tests: %w", c.tenants.Load(), err)
	}
	return os.RemoveAll(s.dir)
}
