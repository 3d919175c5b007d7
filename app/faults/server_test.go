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
	"sync"
	"syscall"
	"testing"
	"time"

	"molrun/web/client"
)

// server is molrun on a directory of its own, through any number of lives.
type server struct {
	t       *testing.T
	dir     string   // of configuration, algorithms and diary
	data    string   // its data directory
	prefix  []string // a command that starts it, such as strace
	env     []string // beyond the common environment
	remote  bool     // it runs in a virtual machine, its diary is out of reach
	key     string   // of an administrator of the organization "lab"
	base    string
	process *exec.Cmd
	exited  chan struct{}
	log     *logBuffer // of this life
}

// logBuffer keeps what a server printed.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) add(line []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Write(line)
	b.text.WriteByte('\n')
}

func (b *logBuffer) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Reset()
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// tail gives the end of a log, enough to see what went wrong.
func (b *logBuffer) tail() string {
	lines := strings.Split(b.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// newServer lays out a server that does not run yet. data "" is a folder
// beside the configuration; config is TOML.
func newServer(t *testing.T, data, config string) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir(), data: data, log: &logBuffer{}}
	if data == "" {
		s.data = filepath.Join(s.dir, "data")
	}
	linkPrograms(t, s.path("bin"))
	must(t, os.Mkdir(s.path("diary"), 0o700))
	must(t, os.Mkdir(s.path("algorithms"), 0o700))
	must(t, os.WriteFile(s.path("algorithms", "diary.toml"), fmt.Appendf(nil, diaryFile, s.path("diary")), 0o600))
	common := fmt.Sprintf("data = %q\nalgorithms = %q\nlisten = \"127.0.0.1:0\"\n", s.data, s.path("algorithms"))
	must(t, os.WriteFile(s.path("config.toml"), []byte(common+config), 0o600))
	t.Cleanup(func() {
		s.kill()
		s.killTasks()
		if t.Failed() {
			t.Logf("log of the last life:\n%s", s.log.tail())
		}
	})
	return s
}

func (s *server) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

// command makes a molrun command on this server's data.
func (s *server) command(ctx context.Context, args ...string) *exec.Cmd {
	argv := append(append([]string{}, s.prefix...), *program)
	argv = append(argv, args...)
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir = s.dir
	c.Env = append([]string{"PATH=" + s.path("bin"), "HOME=" + s.dir, "MOLRUN_CONFIG=" + s.path("config.toml")}, s.env...)
	return c
}

// begin starts a life and waits until it answers. An error says that it ended
// before that.
func (s *server) begin() error {
	s.t.Helper()
	s.process = s.command(context.Background(), "serve")
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := s.process.StderrPipe()
	must(s.t, err)
	must(s.t, s.process.Start())
	s.log, s.exited = &logBuffer{}, make(chan struct{})
	listening := make(chan string, 1)
	go follow(s.process, stderr, s.log, listening, s.exited)
	select {
	case address := <-listening:
		s.base = "http://" + address
	case <-s.exited:
		return fmt.Errorf("the server ended with %v at its start:\n%s", s.process.ProcessState, s.log.tail())
	case <-time.After(patience):
		s.t.Fatalf("the server does not start:\n%s", s.log.tail())
	}
	if s.key != "" {
		return nil
	}
	return s.makeKey()
}

// start is begin where nothing may go wrong.
func (s *server) start() {
	s.t.Helper()
	must(s.t, s.begin())
}

// follow keeps a life's log, finds its address in it and waits for its end.
func follow(process *exec.Cmd, stderr io.Reader, log *logBuffer, listening chan<- string, exited chan<- struct{}) {
	defer close(exited)
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Message, Listen, Level string }
		_ = json.Unmarshal(lines.Bytes(), &line) // what is no JSON has no message
		switch {
		case line.Level == "info" && strings.HasSuffix(line.Message, "request"):
			continue // there are thousands
		case line.Message == "started":
			listening <- line.Listen // once a life
		}
		log.add(lines.Bytes())
	}
	_ = process.Wait() // ProcessState tells
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

// client gives a client of this life; its connections end with the test.
func (s *server) client() *client.Client {
	c := client.NewWith(s.base, s.key, &http.Transport{MaxIdleConnsPerHost: 16})
	s.t.Cleanup(c.Close)
	return c
}

// ended reports whether this life is over.
func (s *server) ended() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// await waits for the end of this life and gives its exit code, -1 for a
// signal.
func (s *server) await() int {
	s.t.Helper()
	select {
	case <-s.exited:
	case <-time.After(patience):
		s.t.Fatalf("the server does not end:\n%s", s.log.tail())
	}
	return s.process.ProcessState.ExitCode()
}

// kill ends this life as a crash would; tasks live on.
func (s *server) kill() {
	if s.process == nil || s.process.Process == nil {
		return
	}
	_ = s.process.Process.Kill() // it may be over already
	<-s.exited
}

// stop ends this life as an operator would.
func (s *server) stop() {
	s.t.Helper()
	must(s.t, s.process.Process.Signal(syscall.SIGTERM))
	if code := s.await(); code != 0 {
		s.t.Errorf("the server ended with %d after SIGTERM:\n%s", code, s.log.tail())
	}
}

// check runs `molrun check` and fails the test where it finds a problem.
func (s *server) check(args ...string) {
	s.t.Helper()
	if text, err := s.checked(args...); err != nil {
		s.t.Errorf("molrun check: %v\n%s", err, text)
	}
}

// checked runs `molrun check` and gives what it says.
func (s *server) checked(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	plain := *s
	plain.prefix, plain.env = nil, nil
	out, err := plain.command(ctx, append([]string{"check"}, args...)...).CombinedOutput()
	return string(out), err
}

// tasks gives the processes of jobs: all that carry a task's mark and have to
// do with this server's data.
func (s *server) tasks() (pids []int) {
	entries, err := os.ReadDir("/proc")
	must(s.t, err)
	for _, e := range entries {
		var pid int
		if _, err := fmt.Sscan(e.Name(), &pid); err != nil || pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil || !bytes.Contains(environ, []byte("MOLRUN_TASK=")) {
			continue // gone, or not a task's
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")) // a process that is gone has none
		where, _ := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		if strings.Contains(string(environ)+string(line)+where, s.dir) || strings.Contains(string(line)+where, s.data) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killTasks ends all processes of jobs, and waits until they are gone.
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
