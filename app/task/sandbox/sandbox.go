package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"molrun/app/task/place"
	"molrun/app/task/process"
	"molrun/app/task/protocol"
)

const (
	startTimeout = 30 * time.Second // for the start of a sandbox, which takes milliseconds
	endTimeout   = 5 * time.Second  // for the last messages and output of a sandbox that has exited
	killPause    = 10 * time.Millisecond
)

// Config describes the sandbox of a step.
type Config struct {
	Bubblewrap        string     // path of bwrap
	Sized             bool       // see Probe
	Container         *Container // instead of bubblewrap; nil means no container
	Shared            slots      // a *Shared, in which the step gets a slot; nil means a separate sandbox
	Token             string     // marks the processes of the task
	Allowed           protocol.Sandbox
	Work              string   // work directory, with the same path inside
	ReadOnly          []string // below Work
	Own               string   // path of molrun in its commands, to make readable; "" means that of this process
	Hide              []string // paths that would otherwise be visible
	GPUs              []string
	Cards             []string // physical cards of the GPUs; nil if the GPUs are cards
	SharedMemoryBytes int64    // size of /dev/shm; 0 means the kernel's default
	CPUs              []int    // CPUs to pin the program to in a shared sandbox; empty means no pinning
	Cgroup            *os.File // directory of the program's cgroup in a shared sandbox; nil means none
	Stdin             *os.File // nil means no input
	Stdout, Stderr    *os.File

	// Fork starts a process. Wanted reports whether the program should still start, while
	// its container is being created. Reaped reaps exited processes, and reports whether
	// all processes of a sandbox that was killed because its program could not start have
	// exited.
	Fork   func(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error)
	Wanted func() bool
	Reaped func() bool
}

// slots assigns slots in a shared sandbox to steps.
type slots interface {
	slot(c Config) (wrapper, error)
}

// Started is called with a sandbox's first process before the program starts: killing
// that process kills the whole sandbox. container is the container's name, if there is
// one.
type Started func(first process.ID, container string) error

// wrapper creates a sandbox around a first process (Init): bubblewrap, or a container
// runtime.
type wrapper interface {
	// start starts the process that creates the sandbox.
	start(c Config) (pid int, err error)
	// connect waits for the connection to the first process.
	connect(c Config, pid int) (*os.File, error)
	// first identifies the first process, once it is ready.
	first(pid int, conn *os.File) (process.ID, error)
	// container returns the name of the container, or "" if there is none.
	container() string
	// place describes the mount namespace of the program in a shared sandbox; nil if the
	// sandbox is not shared.
	place() *place.Mounts
	// reason explains why there is no sandbox.
	reason() string
	// close waits for the last output of the wrapper, which has exited, and cleans up.
	// abandoned says that it was killed.
	close(abandoned bool) error
}

// wrapper returns the wrapper that c selects.
func (c Config) wrapper(program Program) (wrapper, error) {
	switch {
	case c.Container != nil:
		return newBox(c)
	case c.Shared != nil:
		return c.Shared.slot(c)
	}
	return newBubblewrap(c, program)
}

// Program is what to run in a sandbox, with its limits.
type Program struct {
	Path      string   `json:"path"`
	Argv      []string `json:"argv"`
	Env       []string `json:"env"`
	Dir       string   `json:"dir"`             // current directory
	Image     bool     `json:"image,omitempty"` // Path is looked up inside, and Env completes that of the image
	Processes int64    `json:"processes"`
	FileBytes int64    `json:"fileBytes"`
}

// Sandbox is the sandbox of one step, as seen from outside.
type Sandbox struct {
	PID   int        // of bwrap or of the runtime, which exits after everything inside
	First process.ID // the first process inside

	wrapper    wrapper
	reaped     func() bool
	killed     bool // bwrap or the runtime might not have cleaned up
	conn       *os.File
	commands   *json.Encoder
	events     *json.Decoder
	ended      chan syscall.WaitStatus
	over       chan Usage
	eventsDone chan struct{} // closed when no more events follow
}

// Usage is the resource usage of all processes of a step.
type Usage struct {
	CPUSeconds float64 `json:"cpuSeconds"`
	Largest    int64   `json:"largest"` // memory of the largest process in bytes, as far as known
}

// addUsage adds the usage of an exited process and of the children that it waited for.
func (u *Usage) addUsage(of syscall.Rusage) {
	u.CPUSeconds += time.Duration(of.Utime.Nano() + of.Stime.Nano()).Seconds()
	u.Largest = max(u.Largest, process.Largest(of))
}

// Start starts a program in a sandbox. After an error, nothing of it remains.
func Start(c Config, p Program, started Started) (*Sandbox, error) {
	w, err := c.wrapper(p)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{
		wrapper: w, reaped: c.Reaped, ended: make(chan syscall.WaitStatus, 1), over: make(chan Usage, 1), eventsDone: make(chan struct{}),
	}
	if s.PID, err = w.start(c); err != nil {
		return nil, errors.Join(err, w.close(true))
	}
	if s.conn, err = w.connect(c, s.PID); err != nil {
		return nil, errors.Join(err, s.kill())
	}
	s.commands, s.events = json.NewEncoder(s.conn), json.NewDecoder(s.conn)
	if err := s.await(); err != nil {
		return nil, errors.Join(err, s.kill())
	}
	if err := s.startProgram(command{Run: &p, Place: w.place()}, started); err != nil {
		return nil, err
	}
	go s.listen()
	return s, nil
}

// await waits until the first process inside is ready.
func (s *Sandbox) await() (err error) {
	if err := s.conn.SetDeadline(time.Now().Add(startTimeout)); err != nil {
		return err
	}
	var e event
	if err := s.events.Decode(&e); err != nil || !e.Ready {
		return fmt.Errorf("the sandbox can't be set up: %s", s.wrapper.reason())
	}
	s.First, err = s.wrapper.first(s.PID, s.conn)
	return err
}

// startProgram makes the first process start the program.
func (s *Sandbox) startProgram(c command, started Started) error {
	if err := started(s.First, s.wrapper.container()); err != nil {
		return errors.Join(err, s.kill())
	}
	err := errors.Join(s.conn.SetDeadline(time.Now().Add(startTimeout)), s.commands.Encode(c))
	var e event
	if err == nil {
		err = s.events.Decode(&e)
	}
	switch {
	case err != nil:
		return errors.Join(fmt.Errorf("the sandbox exited before the program started: %w", err), s.kill())
	case e.Incompatible != "":
		return errors.Join(fmt.Errorf("%w: %s", place.ErrIncompatible, e.Incompatible), s.cancel(c))
	case e.Fault != 0:
		return errors.Join(startError(*c.Run, e.Fault), s.cancel(c))
	}
	return s.conn.SetDeadline(time.Time{})
}

// cancel ends a sandbox in which no program has started. A shared one remains usable.
func (s *Sandbox) cancel(c command) error {
	if c.Place == nil {
		return s.kill()
	}
	return errors.Join(s.conn.Close(), s.wrapper.close(false))
}

// startError explains why a program did not start inside.
func startError(p Program, errno syscall.Errno) error {
	if p.Image && errno == syscall.ENOENT {
		return fmt.Errorf("the image does not contain the program %q or its interpreter; correct the command or the image", p.Argv[0])
	}
	if errno == syscall.ENOENT && exists(p.Path) {
		return fmt.Errorf("the program %q or its interpreter is not visible in the sandbox; "+
			"add its folder to read under [sandbox] in the algorithm file", p.Argv[0])
	}
	return process.StartError(p.Argv[0], errno)
}

// listen waits for the event that the program has exited. It returns when the first
// process inside has exited, or when close stops waiting.
func (s *Sandbox) listen() {
	defer close(s.eventsDone)
	for {
		var e event
		if s.events.Decode(&e) != nil {
			return
		}
		if e.Ended != nil {
			s.ended <- *e.Ended // sent once, like Over
		}
		if e.Over != nil {
			s.over <- *e.Over
		}
	}
}

// Ended delivers how the program ended. Processes that it started might still be running.
func (s *Sandbox) Ended() <-chan syscall.WaitStatus { return s.ended }

// Over delivers the usage of all processes of a step in a shared sandbox, once they have
// exited.
func (s *Sandbox) Over() <-chan Usage { return s.over }

// SignalProgram signals the program's process group.
func (s *Sandbox) SignalProgram(sig syscall.Signal) { s.sendCommand(command{Signal: sig}) }

// SignalAll signals every process inside except the first.
func (s *Sandbox) SignalAll(sig syscall.Signal) { s.sendCommand(command{Signal: sig, All: true}) }

// sendCommand ignores failure: if the first process has exited, so has everything inside.
func (s *Sandbox) sendCommand(c command) {
	s.conn.SetWriteDeadline(time.Now().Add(endTimeout))
	s.commands.Encode(c)
}

// Kill kills everything inside immediately.
func (s *Sandbox) Kill() {
	if err := s.First.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, process.ErrGone) {
		s.conn.Close() // in a container it can belong to another user; it exits when the connection closes
	}
}

// Status returns how the program ended, once bwrap has exited: as reported by the first
// process or, if that was killed, by bwrap.
func (s *Sandbox) Status(bwrap syscall.WaitStatus) syscall.WaitStatus {
	s.killed = bwrap.Signaled()
	if bwrap.Exited() && bwrap.ExitStatus() > 128 {
		bwrap = syscall.WaitStatus(bwrap.ExitStatus() - 128)
	}
	return s.reported(bwrap)
}

// SharedStatus returns how the program ended once its step in a shared sandbox has
// completed, if Ended has not delivered it.
func (s *Sandbox) SharedStatus() syscall.WaitStatus {
	return s.reported(syscall.WaitStatus(syscall.SIGKILL))
}

// reported returns the status reported by the first process, or otherwise if there is
// none.
func (s *Sandbox) reported(otherwise syscall.WaitStatus) syscall.WaitStatus {
	s.awaitEventsDone()
	select {
	case status := <-s.ended:
		return status
	default:
		return otherwise
	}
}

// awaitEventsDone waits until no more events follow.
func (s *Sandbox) awaitEventsDone() {
	s.conn.SetReadDeadline(time.Now().Add(endTimeout))
	<-s.eventsDone
}

// Close cleans up once everything inside has exited.
func (s *Sandbox) Close() error {
	s.awaitEventsDone()
	return errors.Join(s.conn.Close(), s.wrapper.close(s.killed))
}

// kill kills a sandbox whose program did not start.
func (s *Sandbox) kill() error {
	var err error
	if s.conn != nil {
		err = s.conn.Close() // ends the first process, if nothing else does
	}
	syscall.Kill(s.PID, syscall.SIGKILL) // not reaped yet, so the PID can't have been reused
	if s.First.PID > 0 {
		s.Kill()
	}
	for end := time.Now().Add(endTimeout); !s.reaped() && time.Now().Before(end); {
		time.Sleep(killPause)
	}
	return errors.Join(err, s.wrapper.close(true))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
