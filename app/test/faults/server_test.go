package faults

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/test/must"
	"molrun/app/test/whole"
)

// server is molrun on a temporary data directory. It can be started any number
// of times.
type server struct {
	t       *testing.T
	dir     string   // contains configuration, algorithms and diary
	data    string   // data directory
	program string   // path of molrun
	prefix  []string // command line that starts molrun, such as strace
	env     []string // additional environment variables
	remote  bool     // the server runs in a virtual machine, where its diary cannot be read
	key     string   // of an administrator of the organization "lab"
	base    string
	process *exec.Cmd
	exited  chan struct{}
	log     *whole.Log // log since the last start
}

// newServer prepares a server without starting it. If data is "", the data directory is
// next to the configuration file. config is TOML.
func newServer(t *testing.T, data, config string) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir(), data: data, program: *program, log: &whole.Log{}}
	if data == "" {
		s.data = filepath.Join(s.dir, "data")
	}
	linkPrograms(t, s.path("bin"))
	must.OK(t, os.Mkdir(s.path("diary"), 0o700))
	must.OK(t, os.Mkdir(s.path("algorithms"), 0o700))
	s.addAlgorithm(plainDiary)
	common := fmt.Sprintf("data = %q\nalgorithms = %q\nlisten = \"127.0.0.1:0\"\n", s.data, s.path("algorithms"))
	must.OK(t, os.WriteFile(s.path("config.toml"), []byte(common+config), 0o600))
	t.Cleanup(func() {
		s.kill()
		s.killTasks()
		if t.Failed() {
			t.Logf("log since the last start:\n%s", s.log.Tail())
		}
	})
	return s
}

func (s *server) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

// command returns a molrun command that uses this server's data.
func (s *server) command(ctx context.Context, args ...string) *exec.Cmd {
	argv := append(append([]string{}, s.prefix...), s.program)
	argv = append(argv, args...)
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir = s.dir
	c.Env = append([]string{"PATH=" + s.path("bin"), "HOME=" + s.dir, "MOLRUN_CONFIG=" + s.path("config.toml"), "MOLRUN_VALIDATORS_TIMEOUT=5m"}, s.env...)
	return c
}

// begin starts the server and waits until it listens. It returns an error if the
// server exits before that.
func (s *server) begin() error {
	s.t.Helper()
	s.process = s.command(context.Background(), "serve", "--init")
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := s.process.StderrPipe()
	must.OK(s.t, err)
	must.OK(s.t, s.process.Start())
	s.log, s.exited = &whole.Log{}, make(chan struct{})
	listening := make(chan string, 1)
	go follow(s.process, stderr, s.log, listening, s.exited)
	select {
	case address := <-listening:
		s.base = "http://" + address
	case <-s.exited:
		return fmt.Errorf("the server ended with %v while starting:\n%s", s.process.ProcessState, s.log.Tail())
	case <-time.After(patience):
		s.t.Fatalf("the server does not start:\n%s", s.log.Tail())
	}
	if s.key != "" {
		return nil
	}
	return s.makeKey()
}

// start is like begin, but fails the test on an error.
func (s *server) start() {
	s.t.Helper()
	must.OK(s.t, s.begin())
}

// follow collects the log, extracts the address from it and waits for the process to
// exit.
func follow(process *exec.Cmd, stderr io.Reader, log *whole.Log, listening chan<- string, exited chan<- struct{}) {
	defer close(exited)
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Message, Listen, Level string }
		_ = json.Unmarshal(lines.Bytes(), &line) // other lines are not JSON
		switch {
		case line.Level == "info" && strings.HasSuffix(line.Message, "request"):
			continue // too many to keep
		case line.Message == "started":
			listening <- line.Listen // occurs once
		}
		log.AddLine(lines.Text())
	}
	_ = process.Wait() // the result is in ProcessState
}

func (s *server) makeKey() error {
	control := client.NewControl(filepath.Join(s.data, "control.sock"))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	made, err := control.CreateKey(ctx, client.KeyRequest{Organization: "lab", Email: "ann@lab.example", Role: "admin"})
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	s.key = made.Secret
	return nil
}

// client returns a client for the running server, which is closed when the test ends.
func (s *server) client() *client.Client {
	c := client.NewWith(s.base, s.key, &http.Transport{MaxIdleConnsPerHost: 16})
	s.t.Cleanup(c.Close)
	return c
}

// ended reports whether the server has exited.
func (s *server) ended() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// await waits until the server exits and returns its exit code, or -1 if it was killed by
// a signal.
func (s *server) await() int {
	s.t.Helper()
	select {
	case <-s.exited:
	case <-time.After(patience):
		s.t.Fatalf("the server does not exit:\n%s", s.log.Tail())
	}
	return s.process.ProcessState.ExitCode()
}

// kill kills the server with SIGKILL, which simulates a crash. Its tasks keep running.
func (s *server) kill() {
	if s.process == nil || s.process.Process == nil {
		return
	}
	_ = s.process.Process.Kill() // it might have exited already
	<-s.exited
}

// stop stops the server with SIGTERM, as an administrator would.
func (s *server) stop() {
	s.t.Helper()
	must.OK(s.t, s.process.Process.Signal(syscall.SIGTERM))
	if code := s.await(); code != 0 {
		s.t.Errorf("the server ended with %d after SIGTERM:\n%s", code, s.log.Tail())
	}
}

// check runs `molrun check` and fails the test if it finds a problem.
func (s *server) check(args ...string) {
	s.t.Helper()
	if text, err := s.checked(args...); err != nil {
		s.t.Errorf("molrun check: %v\n%s", err, text)
	}
}

// checked runs `molrun check` and returns its output.
func (s *server) checked(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	plain := *s
	plain.prefix, plain.env = nil, nil
	out, err := plain.command(ctx, append([]string{"check"}, args...)...).CombinedOutput()
	return string(out), err
}

// tasks returns the PIDs of this server's job processes, which have MOLRUN_TASK in their
// environment and refer to this server's directories.
func (s *server) tasks() (pids []int) {
	entries, err := os.ReadDir("/proc")
	must.OK(s.t, err)
	for _, e := range entries {
		var pid int
		if _, err := fmt.Sscan(e.Name(), &pid); err != nil || pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil || !bytes.Contains(environ, []byte("MOLRUN_TASK=")) {
			continue // the process has exited or is not a task
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")) // empty if the process has exited
		where, _ := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		if strings.Contains(string(environ)+string(line)+where, s.dir) || strings.Contains(string(line)+where, s.data) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killTasks kills all processes of jobs and waits until they have exited.
func (s *server) killTasks() {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		pids := s.tasks()
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				s.t.Error(err)
			}
		}
	}
	s.t.Error("processes of jobs can't be killed")
}
