package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"molrun/app/task/place"
	"molrun/app/task/process"
)

// The descriptors of the first process in a sandbox, in addition to 0 to 2.
const (
	connFD    = 3 // to the process outside
	programFD = 4 // this program's file (process.Self), which might have no path inside
	stdoutFD  = 5 // the step's standard output
	stderrFD  = 6
	namesFD   = 7 // /etc/passwd, which bwrap reads and closes; then /etc/group, and possibly /etc/hosts
)

// command is a message from the process outside: first the program to run, then signals
// to send. When it closes the connection, everything inside exits.
type command struct {
	Run    *Program       `json:"run,omitempty"`
	Place  *place.Mounts  `json:"place,omitempty"` // of a program in a shared sandbox
	Signal syscall.Signal `json:"signal,omitempty"`
	All    bool           `json:"all,omitempty"` // all processes; otherwise the program's group
}

// event is a message from the first process inside: it is ready, it started the program
// or could not, or the program has exited.
type event struct {
	Ready        bool                `json:"ready,omitempty"`
	Started      bool                `json:"started,omitempty"`
	Fault        syscall.Errno       `json:"fault,omitempty"`
	Incompatible string              `json:"unfit,omitempty"` // why this program can't run in a shared sandbox
	Ended        *syscall.WaitStatus `json:"ended,omitempty"`
	Over         *Usage              `json:"over,omitempty"` // all processes of a step in a shared sandbox have exited
}

// Init is the entire life of the first process in a sandbox (PID 1). In a container it
// connects to the socket; if socket is "", bwrap passes the connection on. It starts the
// program, reaps orphans, forwards signals and reports exactly how the program ended:
// bwrap itself does not distinguish a signal from an exit code above 128. It makes no
// decisions. When it exits, the kernel kills all remaining processes.
func Init(socket string) error {
	p, err := newInitProcess()
	if err != nil {
		return err
	}
	fds := []int{connFD, 0, stdoutFD, stderrFD}
	if socket != "" {
		if fds, err = receive(socket); err != nil {
			return fmt.Errorf("connect to %s: %w", socket, err)
		}
	} else {
		closeOnExec()
	}
	defer p.connect(fds).Close()
	if err := p.events.Encode(event{Ready: true}); err != nil {
		return err
	}
	return p.run()
}

func closeOnExec() {
	for fd := connFD; fd <= stderrFD; fd++ {
		syscall.CloseOnExec(fd)
	}
}

// InitShared is the entire life of the first process in a shared sandbox. For each step,
// it receives a separate connection over the first one, with the program's streams and
// possibly its cgroup. It then acts like Init for that step until all its processes have
// exited.
func InitShared() error {
	p, err := newInitProcess()
	if err != nil {
		return err
	}
	closeOnExec()
	control := os.NewFile(connFD, "connection")
	defer control.Close() // not earlier
	if err := json.NewEncoder(control).Encode(event{Ready: true}); err != nil {
		return err
	}
	for {
		fds, err := receiveFiles(connFD)
		if err != nil || len(fds) == 0 {
			return err // the process outside has exited
		}
		if err := p.serveSlot(fds); err != nil {
			return err
		}
	}
}

// newInitProcess prepares this process to be the first one in a sandbox.
func newInitProcess() (*initProcess, error) {
	process.PreferOOMKill(os.Getpid()) // inherited by all programs
	if err := refuseTracing(); err != nil {
		return nil, err
	}
	// A program can send signals to every process that it has access to. They must not
	// end this process, and with it the sandbox.
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGPIPE, syscall.SIGTSTP)
	p := &initProcess{children: make(chan os.Signal, 1)}
	signal.Notify(p.children, syscall.SIGCHLD)
	return p, nil
}

// refuseTracing prevents the programs inside, which run as the same user, from tracing
// this process and reading its memory: it has the connection to the process outside.
func refuseTracing() error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); errno != 0 {
		return fmt.Errorf("disable tracing: %w", errno)
	}
	return nil
}

// receive connects to the process outside. It returns the connection and the program's
// streams, which that process sends first.
func receive(socket string) ([]int, error) {
	syscall.Umask(0o077)
	conn, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Connect(conn, &syscall.SockaddrUnix{Name: socket}); err != nil {
		return nil, err
	}
	streams, err := receiveFiles(conn)
	if err == nil && len(streams) != 3 {
		err = fmt.Errorf("received %d streams", len(streams))
	}
	return append([]int{conn}, streams...), err
}

// mostFiles is the maximum number of files sent at once.
const mostFiles = 5

// receiveFiles receives descriptors sent with one byte, or none if the other end is
// closed.
func receiveFiles(conn int) ([]int, error) {
	var one [1]byte
	rights := make([]byte, syscall.CmsgSpace(mostFiles*4))
	read, n, _, _, err := syscall.Recvmsg(conn, one[:], rights, syscall.MSG_CMSG_CLOEXEC)
	if errors.Is(err, syscall.EINTR) {
		return receiveFiles(conn)
	}
	if err != nil || read == 0 {
		return nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(err, errors.New("received no files"))
	}
	return syscall.ParseUnixRights(&messages[0])
}

// initProcess is the state of Init.
type initProcess struct {
	children chan os.Signal
	commands chan command // closed when the process outside has exited
	events   *json.Encoder
	streams  [3]int // standard input, output and error of the program
	cgroup   int    // of a program in a shared sandbox; 0 means none
	leader   int    // the program
	ended    bool
	used     Usage // by processes that have exited
}

// connect makes this process receive commands from a connection, and stores the program's
// streams.
func (p *initProcess) connect(fds []int) *os.File {
	syscall.SetNonblock(fds[0], true) // so that closing it interrupts a read
	conn := os.NewFile(uintptr(fds[0]), "connection")
	p.streams, p.events, p.commands = [3]int(fds[1:]), json.NewEncoder(conn), make(chan command)
	go listen(conn, p.commands) // returns when the connection or this process ends
	return conn
}

func listen(conn *os.File, commands chan<- command) {
	defer close(commands)
	for decoder := json.NewDecoder(conn); ; {
		var c command
		if decoder.Decode(&c) != nil {
			return
		}
		commands <- c
	}
}

// serveSlot runs one program of a shared sandbox.
func (p *initProcess) serveSlot(fds []int) error {
	if len(fds) < mostFiles-1 {
		return fmt.Errorf("received %d files", len(fds))
	}
	p.leader, p.ended, p.used, p.cgroup = 0, false, Usage{}, 0
	if len(fds) == mostFiles {
		p.cgroup = fds[mostFiles-1]
		defer syscall.Close(p.cgroup)
	}
	conn := p.connect(fds[:mostFiles-1])
	defer p.disconnect(conn)
	if err := p.events.Encode(event{Ready: true}); err != nil {
		return err
	}
	if err := p.run(); err != nil || p.leader == 0 {
		return err
	}
	return p.events.Encode(event{Over: &p.used})
}

// disconnect closes the connection of a completed step and waits for its reader.
func (p *initProcess) disconnect(conn *os.File) {
	conn.Close()
	for range p.commands { //nolint:revive // what came too late
	}
	for _, fd := range p.streams {
		if fd >= 0 {
			syscall.Close(fd)
		}
	}
}

func (p *initProcess) run() error {
	first, ok := <-p.commands
	if !ok {
		return nil // this was only a self-test
	}
	if first.Run == nil {
		return errors.New("the first command names no program")
	}
	if err := p.start(first.Run, first.Place); errors.Is(err, place.ErrIncompatible) {
		return p.events.Encode(event{Incompatible: strings.TrimPrefix(err.Error(), place.ErrIncompatible.Error()+": ")})
	} else if err != nil {
		return p.events.Encode(event{Fault: errnoOf(err)})
	}
	if err := p.events.Encode(event{Started: true}); err != nil {
		return err
	}
	for !p.reap() {
		select {
		case <-p.children:
		case c, ok := <-p.commands:
			if !ok {
				return errors.New("the process that runs the task has exited")
			}
			p.signal(c)
		}
	}
	return nil
}

func errnoOf(err error) syscall.Errno {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return syscall.EIO
}

// start starts the program, with the limits that it and its children inherit.
func (p *initProcess) start(program *Program, at *place.Mounts) (err error) {
	if err := process.Limit(program.Processes, program.FileBytes); err != nil {
		return err
	}
	path, env := program.Path, program.Env
	if program.Image {
		env = complete(os.Environ(), env)
	}
	if path == "" {
		if path, err = process.LookUp(program.Argv, env, program.Dir); err != nil {
			return syscall.ENOENT
		}
	}
	attr := &syscall.ProcAttr{
		Dir:   program.Dir,
		Env:   env,
		Files: []uintptr{uintptr(p.streams[0]), uintptr(p.streams[1]), uintptr(p.streams[2])},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	if p.cgroup > 0 {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, p.cgroup
	}
	if at != nil {
		p.leader, err = at.ForkExec(path, program.Argv, attr)
	} else {
		p.leader, err = forkExec(path, program.Argv, attr)
	}
	for i := 1; i < len(p.streams); i++ {
		syscall.Close(p.streams[i]) // the log ends when its last writer closes it
		p.streams[i] = -1
	}
	return err
}

// forkExec starts a program with the system call filter.
func forkExec(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread exits with this function
		if err = process.DenyCalls(false); err == nil {
			pid, err = syscall.ForkExec(path, argv, attr)
		}
	}()
	<-done
	return pid, err
}

// complete returns the environment of an image with variables replaced by those of own.
func complete(image, own []string) []string {
	env := slices.Clone(own)
	for _, entry := range image {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.ContainsFunc(own, func(e string) bool { return strings.HasPrefix(e, name+"=") }) {
			env = append(env, entry)
		}
	}
	return env
}

// signal ignores failure, because the processes might have exited.
func (p *initProcess) signal(c command) {
	pid := -p.leader
	if c.All {
		pid = -1 // all but this process
	} else if p.ended {
		return
	}
	syscall.Kill(pid, c.Signal)
	syscall.Kill(pid, syscall.SIGCONT)
}

// reap reaps all processes that have exited, and reports whether none remains.
func (p *initProcess) reap() (none bool) {
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, &usage)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil: // ECHILD: there are none
			return true
		case pid == 0:
			return false
		}
		p.used.addUsage(usage)
		if pid == p.leader {
			p.ended = true
			if err := p.events.Encode(event{Ended: &status}); err != nil {
				fmt.Fprintf(os.Stderr, "report the program's exit: %v\n", err)
			}
		}
	}
}
