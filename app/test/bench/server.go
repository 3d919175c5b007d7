package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"molrun/app/test/whole"
)

// server is a molrun process on a data directory.
type server struct {
	program string
	dir     string // has the data, configuration, algorithms and log
	address string
	key     string
	process *child

	blocked bool     // a job keeps the others queued
	series  int      // makes the names of submitted jobs unique
	cursors []string // cursors of pages of its jobs
}

// algorithms contains the algorithm files of the server, by name.
var algorithms = map[string]string{
	// nothing shows the cost of a job apart from its program.
	"nothing": `command = ["/bin/true"]` + parameter("note", "string"),
	// checked runs a program that validates its settings.
	"checked": `command = ["/bin/true"]` + "\n\n[validate]\ncommand = [\"/bin/echo\", \"[]\"]",
	// moment prints the time at which its process runs.
	"moment": `command = ["/bin/date", "+%s%N"]`,
	// sleep reserves a CPU without using it, so that other jobs stay queued.
	"sleep": `command = ["/bin/sleep", "{settings.seconds}"]` + parameter("seconds", "integer"),
	// make-files creates a result of many files.
	"make-files": `command = ["/bin/sh", "-c", "head -c {settings.bytes} /dev/zero | split -a 4 -b {settings.each} - out/part-"]` +
		parameter("bytes", "integer") + parameter("each", "integer"),
	// make-hole creates a result of one sparse file.
	"make-hole": `command = ["/usr/bin/truncate", "-s", "{settings.bytes}", "out/hole"]` + parameter("bytes", "integer"),
}

func parameter(name, kind string) string {
	return fmt.Sprintf("\n\n[[parameters]]\nname = %q\ntype = %q\nrequired = true", name, kind)
}

// longTimeouts makes the server wait for clients that run at the lowest priority: on a busy
// machine they can be silent for a long time between connecting and sending their first
// request.
const longTimeouts = "[limits]\nheader_time = \"10m\"\nidle_time = \"20m\"\n"

// newServer prepares the directory of a server, which can already contain data.
func newServer(program, dir string, cpus int) (*server, error) {
	s := &server{program: program, dir: dir}
	if err := os.MkdirAll(filepath.Join(dir, "algorithms"), 0o700); err != nil {
		return nil, err
	}
	for name, body := range algorithms {
		text := fmt.Sprintf("format = 1\ntype = %q\nversion = \"1\"\ntitle = \"A program of the benchmark\"\nmax_runtime = \"1h\"\n%s\n\n[resources]\nmemory = \"16MiB\"\n", name, body)
		if err := s.addAlgorithm(name, text); err != nil {
			return nil, err
		}
	}
	return s, s.configure(cpus, "off")
}

// addAlgorithm writes an algorithm file.
func (s *server) addAlgorithm(name, text string) error {
	return os.WriteFile(filepath.Join(s.dir, "algorithms", name+".toml"), []byte(text), 0o600)
}

// configure writes the configuration, with the given sandbox setting.
func (s *server) configure(cpus int, sandbox string) error {
	config := fmt.Sprintf("data = %q\nalgorithms = %q\n[runner]\ncpus = %d\nsandbox = %q\n[log]\nformat = \"json\"\n%s",
		s.data(), filepath.Join(s.dir, "algorithms"), cpus, sandbox, longTimeouts)
	return os.WriteFile(s.config(), []byte(config), 0o600)
}

func (s *server) data() string     { return filepath.Join(s.dir, "data") }
func (s *server) database() string { return filepath.Join(s.data(), "jobs.db") }
func (s *server) config() string   { return filepath.Join(s.dir, "config.toml") }
func (s *server) pid() int         { return s.process.pid() }

// start starts the process and returns the time until it responds to a request. The first
// start also creates the API key.
func (s *server) start(ctx context.Context) (took time.Duration, err error) {
	if s.address, err = whole.FreeAddress(); err != nil {
		return 0, err
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	c := exec.Command(s.program, "serve", "--init", "--config", s.config(), "--listen", s.address)
	c.Env, c.Stderr = environment(), log
	began := time.Now()
	if s.process, err = startChild("the server", c); err != nil {
		return 0, err
	}
	err = s.process.await(ctx, s.probe, func() []byte {
		text, _ := os.ReadFile(log.Name())
		return text
	})
	if err != nil {
		return 0, errors.Join(err, s.stop())
	}
	took = time.Since(began)
	if s.key == "" {
		var out string
		out, err = s.run(ctx, "key", "create", "--organization", organization, "--email", seedUser(0), "--role", "admin")
		s.key = strings.TrimSpace(out)
	}
	return took, err
}

// environment returns the environment without the variables that would configure the
// servers.
func environment() (kept []string) {
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "MOLRUN_") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// probe makes one request without an API key.
func (s *server) probe() error {
	c, err := dial(s.address)
	if err != nil {
		return err
	}
	defer c.close()
	_, err = c.do(requestHead("GET", "/version", "", 0))
	return err
}

// run runs a molrun command on the server's data and returns its standard output.
func (s *server) run(ctx context.Context, args ...string) (string, error) {
	c := exec.CommandContext(ctx, s.program, append(args, "--config", s.config())...)
	c.Env = environment()
	var out, said strings.Builder
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("molrun %s: %w: %s%s", args[0], err, out.String(), said.String())
	}
	return out.String(), nil
}

// restart stops the process and starts it again; running jobs continue.
func (s *server) restart(ctx context.Context) (took time.Duration, err error) {
	if err := s.stop(); err != nil {
		return 0, err
	}
	return s.start(ctx)
}

// stop stops the process.
func (s *server) stop() error {
	p := s.process
	s.process = nil
	return p.stop()
}

// close stops the process, and the job that blocks its queue. It does nothing on a nil
// server.
func (s *server) close() error {
	if s == nil {
		return nil
	}
	var err error
	if s.blocked && s.process != nil {
		err = s.unblock()
	}
	return errors.Join(err, s.stop())
}

// otherUser returns the server with the key of another user.
func (s *server) otherUser(ctx context.Context) (*server, error) {
	s.series++
	key, err := s.run(ctx, "key", "create", "--organization", organization, "--email", fmt.Sprintf("other%d@bench.example", s.series))
	other := *s
	other.key = strings.TrimSpace(key)
	return &other, err
}
