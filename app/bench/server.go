package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// server is a molrun process on a data directory.
type server struct {
	program string
	dir     string // of data, configuration, algorithms and log
	address string
	key     string
	process *child
}

// algorithms of the server, by file.
var algorithms = map[string]string{
	// nothing does nothing: what a job costs beside its program.
	"nothing": `command = ["/bin/true"]` + parameter("note", "string"),
	// moment tells when its process runs.
	"moment": `command = ["/bin/date", "+%s%N"]`,
	// hold keeps a CPU busy in the books, so that others wait in the queue.
	"hold": `command = ["/bin/sleep", "{settings.seconds}"]` + parameter("seconds", "integer"),
	// make-files leaves a result of many files, or of one that takes no room.
	"make-files": `command = ["/bin/sh", "-c", "head -c {settings.bytes} /dev/zero | split -a 4 -b {settings.each} - out/part-"]` +
		parameter("bytes", "integer") + parameter("each", "integer"),
	"make-hole": `command = ["/usr/bin/truncate", "-s", "{settings.bytes}", "out/hole"]` + parameter("bytes", "integer"),
}

func parameter(name, kind string) string {
	return fmt.Sprintf("\n\n[[parameters]]\nname = %q\ntype = %q\nrequired = true", name, kind)
}

// newServer lays out a server's directory; data may be there already.
func newServer(program, dir string, cpus int) (*server, error) {
	s := &server{program: program, dir: dir}
	if err := os.MkdirAll(filepath.Join(dir, "algorithms"), 0o700); err != nil {
		return nil, err
	}
	for name, body := range algorithms {
		text := fmt.Sprintf("format = 1\ntype = %q\nversion = \"1\"\ntitle = \"A program of the benchmark\"\nmax_runtime = \"1h\"\n%s\n\n[resources]\nmemory = \"16MiB\"\n", name, body)
		if err := os.WriteFile(filepath.Join(dir, "algorithms", name+".toml"), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	config := fmt.Sprintf("data = %q\nalgorithms = %q\n[runner]\ncpus = %d\nsandbox = \"off\"\n[log]\nformat = \"json\"\n",
		s.data(), filepath.Join(dir, "algorithms"), cpus)
	return s, os.WriteFile(s.config(), []byte(config), 0o600)
}

func (s *server) data() string   { return filepath.Join(s.dir, "data") }
func (s *server) config() string { return filepath.Join(s.dir, "config.toml") }

// start starts the process and gives how long it took until a request was
// answered.
func (s *server) start(ctx context.Context) (took time.Duration, err error) {
	if s.address, err = freeAddress(); err != nil {
		return 0, err
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	c := exec.Command(s.program, "serve", "--config", s.config(), "--listen", s.address)
	c.Env, c.Stderr = environment(), log
	began := time.Now()
	if s.process, err = startChild("the server", c); err != nil {
		return 0, err
	}
	err = s.process.await(ctx, s.answers, func() []byte {
		text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		return text
	})
	if err != nil {
		return 0, errors.Join(err, s.stop())
	}
	took = time.Since(began)
	if s.key == "" {
		err = s.makeKey(ctx)
	}
	return took, err
}

// environment leaves out what would configure the servers.
func environment() (kept []string) {
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "MOLRUN_") {
			kept = append(kept, entry)
		}
	}
	return kept
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// answers tries one request.
func (s *server) answers() error {
	c, err := dial(s.address)
	if err != nil {
		return err
	}
	defer c.close()
	_, err = c.do(head("GET", "/version", "", 0))
	return err
}

func (s *server) makeKey(ctx context.Context) error {
	out, err := s.run(ctx, "key", "create", "--organization", Organization, "--email", seedUser(0), "--role", "admin")
	s.key = strings.TrimSpace(out)
	return err
}

// run runs a command of molrun on the server's data.
func (s *server) run(ctx context.Context, args ...string) (string, error) {
	c := exec.CommandContext(ctx, s.program, append(args, "--config", s.config())...)
	c.Env = environment()
	out, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("molrun %s: %w: %s", args[0], err, out)
	}
	return string(out), nil
}

// stop ends the process.
func (s *server) stop() error {
	if s == nil {
		return nil
	}
	p := s.process
	s.process = nil
	return p.stop()
}

func (s *server) pid() int { return s.process.pid() }

// header authenticates a request.
func (s *server) header() string { return "X-Api-Key: " + s.key + "\r\n" }

// get and post give the bytes of requests to the API.
func (s *server) get(path string) []byte { return head("GET", path, s.header(), 0) }

func (s *server) post(path string, body []byte) []byte {
	h := head("POST", path, s.header()+"Content-Type: application/json\r\n", int64(len(body)))
	return append(h, body...)
}

// ask makes one request and decodes the answer, unless into is nil.
func (s *server) ask(request []byte, into any) error {
	c, err := dial(s.address)
	if err != nil {
		return err
	}
	defer c.close()
	body, err := c.do(request)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// cpu runs something and gives the CPU time that the server used meanwhile.
func (s *server) cpu(run func() error) (time.Duration, error) {
	before, err := cpuOf(s.pid())
	if err != nil {
		return 0, err
	}
	if err := run(); err != nil {
		return 0, err
	}
	after, err := cpuOf(s.pid())
	return after - before, err
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
