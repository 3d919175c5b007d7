package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"molrun/app/protocol"
	"molrun/app/task/process"
)

const (
	startTimeout = 30 * time.Second // for the start of a sandbox, which takes milliseconds
	endTimeout   = 5 * time.Second  // for the last messages and output of a sandbox that has ended
	killPause    = 10 * time.Millisecond
)

// Config says what the sandbox of a step is like.
type Config struct {
	Bubblewrap        string // path of bwrap
	Token             string // marks the processes of the task
	Allowed           protocol.Sandbox
	Work              string   // the work directory, under its own path
	ReadOnly          []string // below Work
	GPUs              []string
	SharedMemoryBytes int64 // size of /dev/shm; 0 leaves it to the kernel
	Stdout, Stderr    *os.File

	// Fork starts a process. Started is called with the sandbox's first process
	// before the program begins: killing that process kills the whole sandbox.
	Fork    func(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error)
	Started func(first process.ID) error
}

// Program is what to run in a sandbox, and the limits of what it may use.
type Program struct {
	Path      string   `json:"path"`
	Argv      []string `json:"argv"`
	Env       []string `json:"env"`
	Work      string   `json:"work"`
	Processes int64    `json:"processes"`
	FileBytes int64    `json:"fileBytes"`
}

// Sandbox is the sandbox of one step, seen from outside.
type Sandbox struct {
	PID   int        // of bwrap, which ends after everything inside
	First process.ID // the first process inside

	temp     string // appears as /tmp inside
	conn     *os.File
	commands *json.Encoder
	events   *json.Decoder
	stderr   *stderr // of bwrap
	ended    chan syscall.WaitStatus
	silent   chan struct{} // closed when no more events come
}

// Start starts a program in a new sandbox.
func Start(c Config, p Program) (*Sandbox, error) {
	v, err := c.view(p.Path)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{temp: v.temp, ended: make(chan syscall.WaitStatus, 1), silent: make(chan struct{})}
	if err := s.fork(c, v); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.temp))
	}
	if err := s.run(c, p); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	go s.listen()
	return s, nil
}

// view returns what the program sees. /tmp is a new folder each time: in that of an
// earlier step, a program could have left links for bwrap to follow.
func (c Config) view(program string) (*view, error) {
	read, err := readable(program, c.Work, c.Allowed.Read)
	if err != nil {
		return nil, err
	}
	v := &view{
		work: c.Work, readOnly: c.ReadOnly, read: read,
		devices: gpuDevices("/", c.GPUs), network: c.Allowed.Network, shmBytes: c.SharedMemoryBytes,
	}
	v.temp, err = os.MkdirTemp(c.Work, ".tmp-")
	return v, err
}

// fork starts bwrap. Nothing about the program is in bwrap's arguments or
// environment: the first process inside gets that later.
func (s *Sandbox) fork(c Config, v *view) error {
	d := openDescriptors()
	defer d.close()
	d.add(c.Stdout, c.Stderr)
	d.accounts()
	d.captureStderr()
	if d.err != nil {
		return fmt.Errorf("prepare the sandbox: %w", d.err)
	}
	pid, err := c.Fork(c.Bubblewrap, append([]string{"bwrap"}, v.initArguments()...), &syscall.ProcAttr{
		Dir: "/", Env: []string{process.TokenVariable + "=" + c.Token}, Files: d.fds(),
	})
	if err != nil {
		return fmt.Errorf("start bubblewrap: %w", err)
	}
	s.PID = pid
	s.conn, s.stderr = d.release()
	s.commands, s.events = json.NewEncoder(s.conn), json.NewDecoder(s.conn)
	return nil
}

// run waits for the first process inside, and has it start the program.
func (s *Sandbox) run(c Config, p Program) error {
	if err := s.conn.SetDeadline(time.Now().Add(startTimeout)); err != nil {
		return err
	}
	var e event
	if err := s.events.Decode(&e); err != nil || !e.Ready {
		return fmt.Errorf("the sandbox can't be set up: %s", s.stderr.reason())
	}
	if err := s.find(); err != nil {
		return err
	}
	if err := c.Started(s.First); err != nil {
		return err
	}
	process.PreferOOMKill(s.First.PID)
	err := s.commands.Encode(command{Run: &p})
	e = event{}
	if err == nil {
		err = s.events.Decode(&e)
	}
	switch {
	case err != nil:
		return fmt.Errorf("the sandbox ended before the program began: %w", err)
	case e.Fault != 0:
		return startError(p, e.Fault)
	}
	return s.conn.SetDeadline(time.Time{})
}

// find identifies the first process inside.
func (s *Sandbox) find() error {
	children := process.Children(s.PID)
	if len(children) == 0 {
		return errors.New("the sandbox has no process")
	}
	first, err := process.Find(children[0])
	if err != nil {
		return fmt.Errorf("find the sandbox: %w", err)
	}
	s.First = first
	return nil
}

// startError says why a program did not start inside.
func startError(p Program, errno syscall.Errno) error {
	if errno == syscall.ENOENT && exists(p.Path) {
		return fmt.Errorf("the program %q, or the interpreter that it names, can't be seen in the sandbox; "+
			"list its folder under [sandbox] read of the algorithm", p.Argv[0])
	}
	return process.StartError(p.Argv[0], errno)
}

// listen waits for the event that the program has ended. It returns when the
// first process inside has ended, or when close stops waiting.
func (s *Sandbox) listen() {
	defer close(s.silent)
	for {
		var e event
		if s.events.Decode(&e) != nil {
			return
		}
		if e.Ended != nil {
			s.ended <- *e.Ended // it comes once
		}
	}
}

// Ended delivers how the program ended, while processes that it left behind
// may still run.
func (s *Sandbox) Ended() <-chan syscall.WaitStatus { return s.ended }

// SignalProgram signals the program's process group.
func (s *Sandbox) SignalProgram(sig syscall.Signal) { s.send(command{Signal: sig}) }

// SignalAll signals every process inside but the first.
func (s *Sandbox) SignalAll(sig syscall.Signal) { s.send(command{Signal: sig, All: true}) }

// send ignores failure: if the first process is gone, so is everything inside.
func (s *Sandbox) send(c command) {
	s.conn.SetWriteDeadline(time.Now().Add(endTimeout))
	s.commands.Encode(c)
}

// Kill ends everything inside at once.
func (s *Sandbox) Kill() { s.First.Signal(syscall.SIGKILL) }

// Status returns how the program ended once bwrap has: as the first process
// reported it or, if that was killed, as bwrap did.
func (s *Sandbox) Status(bwrap syscall.WaitStatus) syscall.WaitStatus {
	s.awaitSilence()
	select {
	case status := <-s.ended:
		return status
	default:
	}
	if bwrap.Exited() && bwrap.ExitStatus() > 128 {
		return syscall.WaitStatus(bwrap.ExitStatus() - 128)
	}
	return bwrap
}

// awaitSilence waits until no more events come.
func (s *Sandbox) awaitSilence() {
	s.conn.SetReadDeadline(time.Now().Add(endTimeout))
	<-s.silent
}

// Close cleans up once everything inside is gone.
func (s *Sandbox) Close() error {
	s.awaitSilence()
	s.stderr.end()
	return errors.Join(s.conn.Close(), os.RemoveAll(s.temp))
}

// abandon ends a sandbox whose program did not start.
func (s *Sandbox) abandon() error {
	syscall.Kill(s.PID, syscall.SIGKILL) // not reaped yet, so the PID was not reused
	if s.First.PID > 0 {
		s.Kill()
	}
	for end := time.Now().Add(endTimeout); time.Now().Before(end); time.Sleep(killPause) {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		for pid > 0 || errors.Is(err, syscall.EINTR) {
			pid, err = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
		if err != nil { // ECHILD: there are none
			break
		}
	}
	s.stderr.end()
	return errors.Join(s.conn.Close(), os.RemoveAll(s.temp))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
