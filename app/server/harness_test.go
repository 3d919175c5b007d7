package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/client"
	"molrun/app/server/config"
	"molrun/app/server/host"
	_ "molrun/app/task/gauged" // tasks are processes of the test binary
	"molrun/app/test/must"
	"molrun/app/test/whole"
	"molrun/storage"
)

// shellFile is an algorithm that runs a script.
const shellFile = `
format = 1
type = "shell"
version = "1"
title = "Run a script"
command = ["sh", "-c", "{settings.script}"]

[[parameters]]
name = "script"
type = "string"
required = true
`

// lackingFile is an algorithm whose program is not installed on this machine.
const lackingFile = `
format = 1
type = "lacking"
version = "1"
title = "Can't run here"
command = ["no-such-program"]
`

// makeData creates a data directory without any records.
func makeData(t *testing.T, data string) {
	t.Helper()
	must.OK(t, os.Mkdir(data, 0o700))
	records, err := storage.Open(filepath.Join(data, host.Database), storage.Options{AnyFileSystem: true})
	must.OK(t, err)
	must.OK(t, records.Close())
}

// testConfig returns the configuration of a new data directory with the algorithms shell
// and lacking.
func testConfig(t *testing.T) config.Config {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"shell.toml": shellFile, "lacking.toml": lackingFile} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	c := config.Default()
	c.Data, c.Listen, c.Algorithms = filepath.Join(t.TempDir(), "data"), "127.0.0.1:0", dir
	makeData(t, c.Data)
	c.Runner.Sandbox, c.Runner.CPUs, c.Database.FileSystem = "off", 2, "any"
	return c
}

// opened opens a data directory as Run does, without serving it.
func opened(t *testing.T, c config.Config) (*service, *whole.Log) {
	t.Helper()
	log := &whole.Log{}
	s, err := openService(c, zerolog.New(log))
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, s.close()) })
	return s, log
}

// running is a service served by Run.
type running struct {
	t      *testing.T
	config config.Config
	log    *whole.Log
	base   string
	stop   func() error // stops the service; can be called again
}

// run starts a service that stops when the test ends.
func run(t *testing.T, c config.Config) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: t, config: c, log: &whole.Log{}}
	started, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- Run(ctx, c, Options{Log: zerolog.New(r.log), Version: "v1", Started: func(base string) { started <- base }})
	}()
	r.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(must.Patience):
			t.Error("the service does not stop")
			return nil
		}
	})
	t.Cleanup(func() {
		must.OK(t, r.stop())
		if t.Failed() {
			t.Logf("log of the service:\n%s", r.log)
		}
	})
	select {
	case r.base = <-started:
	case err := <-ended:
		ended <- err
		t.Fatalf("the service does not start: %v\n%s", err, r.log)
	case <-time.After(must.Patience):
		t.Fatal("the service does not start")
	}
	return r
}

// user creates a key and returns a client that uses it.
func (r *running) user() *client.Client {
	r.t.Helper()
	key, err := client.NewControl(filepath.Join(r.config.Data, "control.sock")).CreateKey(r.t.Context(), client.KeyRequest{Organization: "lab", Email: "ann@lab.example"})
	must.OK(r.t, err)
	c := client.New(r.base, key.Secret)
	r.t.Cleanup(c.Close)
	return c
}

// get sends a request and returns the response with its body.
func (r *running) get(path string, header ...string) (*http.Response, string) {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.base+path, nil)
	must.OK(r.t, err)
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	a, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(q)
	must.OK(r.t, err)
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	must.OK(r.t, err)
	return a, string(body)
}

// logged returns the first log entry with a message, or nil if there is none.
func logged(t *testing.T, log *whole.Log, message string) map[string]any {
	t.Helper()
	for line := range strings.Lines(log.String()) {
		var entry map[string]any
		must.OK(t, json.Unmarshal([]byte(line), &entry))
		if text, _ := entry["message"].(string); strings.Contains(text, message) {
			return entry
		}
	}
	return nil
}
