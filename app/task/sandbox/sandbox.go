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
	endTimeout   = 5 * time.Second  // for the last messages and output of a sandbox that has ended
	killPause    = 10 * time.Millisecond
)

// Config says what the sandbox of a step is like.
type Config struct {
	Bubblewrap        string     // path of bwrap
	Sized             bool       // see Probe
	Container         *Container // instead of bubblewrap; nil: none
	Shared            slots      // a Shared, in which the step gets a slot; nil: the sandbox is the step's own
	Token             string     // marks the processes of the task
	Allowed           protocol.Sandbox
	Work              string   // the work directory, under its own path
	ReadOnly          []string // below Work
	Own               string   // the path of molrun in its commands, to be read; "": that of this process
	Hide              []string // of what programs see otherwise
	GPUs              []string
	Cards             []string // of the GPUs; nil: they are cards
	SharedMemoryBytes int64    // size of /dev/shm; 0 leaves it to the kernel
	CPUs              []int    // to which the program is pinned in a shared sandbox; none: to no ones
	Cgroup            *os.File // directory of the program's cgroup in a shared sandbox; nil: none
	Stdin             *os.File // nil: nothing to read
	Stdout, Stderr    *os.File

	// Fork starts a process. While a container is created, Wanted reports whether the program
	// is still to start. Reaped reaps exited processes, and reports whether all processes of a
	// sandbox that was killed because its program could not start have exited.
	Fork   func(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error)
	Wanted func() bool
	Reaped func() bool
}

// slots gives steps their slots in a shared sandbox.
type slots interface {
	slot(c Config) (wrapper, error)
}

// Started is called with a sandbox's first process before the program begins: killing that
// process kills the whole sandbox. Its container, if it is one, has a name.
type Started func(first process.ID, container string) error

// wrapper is what makes a sandbox around a first process (Init): bubblewrap, or a runtime
// of containers.
type wrapper interface {
	// start starts what makes the sandbox.
	start(c Config) (pid int, err error)
	// connect waits for the connection to the first process.
	connect(c Config, pid int) (*os.File, error)
	// first identifies that process, once it has said that it is ready.
	first(pid int, conn *os.File) (process.ID, error)
	// container returns the name of the container, "" if it is none.
	container() string
	// place describes the mount namespace of the program in a shared sandbox; nil: the
	// sandbox is its own.
	place() *place.Place
	// reason says why there is no sandbox.
	reason() string
	// close waits for the last output of the wrapper, which has ended, and cleans up.
	// Abandoned says that it was killed.
	close(abandoned bool) error
}

// wrapper returns the kind that the configuration asks for.
func (c Config) wrapper(program Program) (wrapper, error) {
	switch {
	case c.Container != nil:
		return newBox(c)
	case c.Shared != nil:
		return c.Shared.slot(c)
	}
	return newBubblewrap(c, program)
}

// Program is what to run in a sandbox, and the limits of what it may use.
type Program struct {
	Path      string   `json:"path"`
	Argv      []string `json:"argv"`
	Env       []string `json:"env"`
	Dir       string   `json:"dir"`             // current directory
	Image     bool     `json:"image,omitempty"` // Path is looked for inside, and Env completes that of the image
	Processes int64    `json:"processes"`
	FileBytes int64    `json:"fileBytes"`
}

// Sandbox is the sandbox of one step, seen from outside.
type Sandbox struct {
	PID   int        // of bwrap or of the runtime, which ends after everything inside
	First process.ID // the first process inside

	wrapper  wrapper
	reaped   func() bool
	killed   bool // bwrap or the runtime may not have cleaned up
	conn     *os.File
	commands *json.Encoder
	events   *json.Decoder
	ended    chan syscall.WaitStatus
	over     chan Usage
	silent   chan struct{} // closed when no more events come
}

// Usage is the resource usage of all processes of a step.
type Usage struct {
	CPUSeconds float64 `json:"cpuSeconds"`
	Largest    int64   `json:"largest"` // memory of the largest process in bytes, as far as it is known
}

// addUsage adds what a process that has ended, and those that it has waited for, have used.
func (u *Usage) addUsage(of syscall.Rusage) {
	u.CPUSeconds += time.Duration(of.Utime.Nano() + of.Stime.Nano()).Seconds()
	u.Largest = max(u.Largest, process.Largest(of))
}

// Start starts a program in a sandbox. After an error, nothing is left of it.
func Start(c Config, p Program, started Started) (*Sandbox, error) {
	w, err := c.wrapper(p)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{
		wrapper: w, reaped: c.Reaped, ended: make(chan syscall.WaitStatus, 1), over: make(chan Usage, 1), silent: make(chan struct{}),
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

// startProgram has the first process start the program.
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
		return errors.Join(fmt.Errorf("the sandbox ended before the program began: %w", err), s.kill())
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

// startError says why a program did not start inside.
func startError(p Program, errno syscall.Errno) error {
	if p.Image && errno == syscall.ENOENT {
		return fmt.Errorf("the image has no program %q, or lacks the interpreter that it names; correct the command or the image", p.Argv[0])
	}
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
			s.ended <- *e.Ended // it comes once, as does the other
		}
		if e.Over != nil {
			s.over <- *e.Over
		}
	}
}

// Ended delivers how the program ended, while processes that it left behind
// may still run.
func (s *Sandbox) Ended() <-chan syscall.WaitStatus { return s.ended }

// Over delivers the usage of all processes of a step in a shared sandbox, once they have
// exited.
func (s *Sandbox) Over() <-chan Usage { return s.over }

// SignalProgram signals the program's process group.
func (s *Sandbox) SignalProgram(sig syscall.Signal) { s.sendCommand(command{Signal: sig}) }

// SignalAll signals every process inside but the first.
func (s *Sandbox) SignalAll(sig syscall.Signal) { s.sendCommand(command{Signal: sig, All: true}) }

// sendCommand ignores failure: if the first process has exited, so has everything inside.
func (s *Sandbox) sendCommand(c command) {
	s.conn.SetWriteDeadline(time.Now().Add(endTimeout))
	s.commands.Encode(c)
}

// Kill ends everything inside at once.
func (s *Sandbox) Kill() {
	if err := s.First.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, process.ErrGone) {
		s.conn.Close() // it is another user's in its container, and ends by itself
	}
}

// Status returns how the program ended once bwrap has: as the first process
// reported it or, if that was killed, as bwrap did.
func (s *Sandbox) Status(bwrap syscall.WaitStatus) syscall.WaitStatus {
	s.killed = bwrap.Signaled()
	if bwrap.Exited() && bwrap.ExitStatus() > 128 {
		bwrap = syscall.WaitStatus(bwrap.ExitStatus() - 128)
	}
	return s.reported(bwrap)
}

// SharedStatus returns how the program ended once its step in a shared sandbox is over, if
// Ended has not delivered it.
func (s *Sandbox) SharedStatus() syscall.WaitStatus {
	return s.reported(syscall.WaitStatus(syscall.SIGKILL))
}

// reported returns what the first process has reported, or else what is given.
func (s *Sandbox) reported(otherwise syscall.WaitStatus) syscall.WaitStatus {
	s.awaitSilence()
	select {
	case status := <-s.ended:
		return status
	default:
		return otherwise
	}
}

// awaitSilence waits until no more events come.
func (s *Sandbox) awaitSilence() {
	s.conn.SetReadDeadline(time.Now().Add(endTimeout))
	<-s.silent
}

// Close cleans up once everything inside has exited.
func (s *Sandbox) Close() error {
	s.awaitSilence()
	return errors.Join(s.conn.Close(), s.wrapper.close(s.killed))
}

// kill ends a sandbox whose program did not start.
func (s *Sandbox) kill() error {
	var err error
	if s.conn != nil {
		err = s.conn.Close() // which ends the first process, if nothing else does
	}
	syscall.Kill(s.PID, syscall.SIGKILL) // not reaped yet, so the PID was not reused
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
