package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"molrun/app/task/container"
	"molrun/app/task/place"
	"molrun/app/task/process"
)

// makeTimeout limits the creation of a container, for which some runtimes copy the image.
const makeTimeout = 10 * time.Minute

// Container describes the container in which a step runs.
type Container struct {
	Runtime   container.Runtime
	Image     string // as named by the runtime's command
	Dir       string // of the attempt
	Job       string
	Attempt   int
	CPUs      []int // to which its processes are pinned; empty means no pinning
	Memory    int64 // of all processes; 0 means no limit
	Processes int64 // 0 means no limit
}

// box makes a sandbox from an image. The first process connects to a socket that is
// mounted in the container, and receives the program's streams through it: some runtimes
// do not pass descriptors on, or have a daemon create the container.
type box struct {
	runtime  container.Runtime
	name     string
	dir      string // of the socket
	temp     string // mounted as /tmp
	program  string // this program's file
	read     []string
	wide     []string          // readable paths with hidden paths below
	covers   []container.Cover // of those hidden paths
	listener int
	peer     int // PID of the first process
	stderr   *stderr
}

func newBox(c Config) (_ wrapper, err error) {
	b := &box{runtime: c.Container.Runtime, name: "molrun-" + strings.ToLower(rand.Text()), listener: -1}
	if b.temp, err = os.MkdirTemp(c.Work, ".tmp-"); err != nil {
		return nil, err
	}
	b.dir, err = os.MkdirTemp(c.Container.Dir, ".box-")
	if err == nil {
		b.program, err = ownFile(b.dir)
	}
	if err == nil {
		err = b.hide(c)
	}
	if err == nil {
		points := append([]string{c.Work}, b.read...)
		err = errors.Join(makeMountPoints(b.temp, "/tmp", points), makeMountPoints(b.temp, "/var/tmp", points))
	}
	if err == nil {
		err = b.listen()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the container: %w", err), b.close(false))
	}
	return b, nil
}

// hide makes an empty folder or file to mount over each hidden path that would be
// visible, with mount points for what remains visible below it.
func (b *box) hide(c Config) error {
	b.wide, b.read = divide(c.Allowed.Read, c.Hide)
	for i, hidden := range covered(c.Hide, b.wide) {
		from := filepath.Join(b.dir, fmt.Sprintf("cover-%d", i))
		var err error
		if hidden.folder {
			err = os.Mkdir(from, 0o700)
		} else {
			err = os.WriteFile(from, nil, 0o600)
		}
		if err == nil {
			err = makeMountPoints(from, hidden.path, append([]string{c.Work}, c.Allowed.Read...))
		}
		if err != nil {
			return err
		}
		b.covers = append(b.covers, container.Cover{From: from, To: hidden.path})
		b.wide = slices.DeleteFunc(b.wide, func(path string) bool { return path == hidden.path }) // no runtime accepts both mounts
	}
	return nil
}

// makeMountPoints creates the mount points of paths below inside, in the folder that will
// be mounted there. The runtime would create them as another user, so that they could not
// be removed, or would fail to create them in a read-only folder.
func makeMountPoints(folder, inside string, paths []string) error {
	for _, path := range paths {
		below, found := strings.CutPrefix(path, inside+"/")
		info, err := os.Stat(path)
		if !found || err != nil {
			continue // the runtime returns the better error
		}
		if err := place.MakePoint(filepath.Join(folder, below), info.IsDir()); err != nil {
			return err
		}
	}
	return nil
}

// ownFile returns a path of this program's file, or of a copy if another version has been
// installed under its name.
func ownFile(dir string) (string, error) {
	self, err := os.Stat(process.Self)
	if err != nil {
		return "", err
	}
	path, err := os.Readlink(process.Self)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err == nil && os.SameFile(info, self) {
		return path, nil
	}
	from, err := os.Open(process.Self)
	if err != nil {
		return "", err
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(dir, "molrun"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o500)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(to, from)
	return to.Name(), errors.Join(err, to.Close())
}

func (b *box) socket() string { return filepath.Join(b.dir, "socket") }

// listen creates the socket, using a short path because the length of socket paths is
// limited.
func (b *box) listen() error {
	dir, err := os.Open(b.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	b.listener, err = syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err == nil {
		err = syscall.Bind(b.listener, &syscall.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/socket", dir.Fd())})
	}
	if err == nil {
		err = syscall.Listen(b.listener, 1)
	}
	return err
}

// arguments returns the arguments of the runtime.
func (b *box) arguments(c Config) ([]string, error) {
	o := container.Box{
		Name: b.name, Image: c.Container.Image, Dir: c.Container.Dir, Job: c.Container.Job, Attempt: c.Container.Attempt,
		Program: b.program, Socket: b.socket(), Work: c.Work, Temp: b.temp, ReadOnly: c.ReadOnly, Read: b.read, Wide: b.wide, Covers: b.covers,
		Network: c.Allowed.Network, GPUs: c.GPUs, UID: os.Getuid(), GID: os.Getgid(),
		CPUs: c.Container.CPUs, MostProcesses: c.Container.Processes, MemoryBytes: c.Container.Memory, SharedMemoryBytes: c.SharedMemoryBytes,
		Environment: []string{process.TokenVariable},
	}
	var err error
	if o.OpenFiles, o.Processes, err = limits(); err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	return b.runtime.Kind.RunArguments(o), nil
}

// podmanProcesses is the value to which Podman lowers its own process limit, which it
// can't raise again for a container.
const podmanProcesses = 32 << 10

// limits returns the limits of this process. The runtime would otherwise try to raise
// them.
func limits() (openFiles, processes container.Limit, err error) {
	var files, procs syscall.Rlimit
	const rlimitProcesses = 6 // RLIMIT_NPROC of setrlimit(2)
	err = errors.Join(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files), syscall.Getrlimit(rlimitProcesses, &procs))
	return container.Limit{Soft: files.Cur, Hard: files.Max}, container.Limit{Soft: min(procs.Cur, podmanProcesses), Hard: min(procs.Max, podmanProcesses)}, err
}

// start starts the runtime's command. Its arguments reveal nothing about the program.
func (b *box) start(c Config) (pid int, err error) {
	args, err := b.arguments(c)
	if err != nil {
		return 0, err
	}
	d := &descriptors{}
	defer d.close()
	null := d.open(os.DevNull)
	d.captureStderr()
	if d.err != nil {
		return 0, fmt.Errorf("prepare the container: %w", d.err)
	}
	mark := process.TokenVariable + "=" + c.Token
	pid, err = c.Fork(b.runtime.Path, append([]string{string(b.runtime.Kind)}, args...), &syscall.ProcAttr{
		Dir: "/", Env: append(b.runtime.Environment(), mark, "APPTAINERENV_"+mark),
		Files: []uintptr{null.Fd(), d.stderrPipe.Fd(), d.stderrPipe.Fd()},
	})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", b.runtime.Kind, err)
	}
	_, b.stderr = d.release()
	return pid, nil
}

// connect waits for the first process while the runtime is running and the step is
// wanted, and sends it the program's streams.
func (b *box) connect(c Config, pid int) (*os.File, error) {
	runtime, err := process.IDOf(pid)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", b.runtime.Kind, err)
	}
	for end := time.Now().Add(makeTimeout); ; time.Sleep(killPause) {
		over := runtime.Ended() // before the last accept: it could have connected and exited
		fd, _, err := syscall.Accept4(b.listener, syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK)
		switch {
		case err == nil:
			return b.welcome(c, fd)
		case !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR):
			return nil, fmt.Errorf("wait for the container: %w", err)
		case over:
			return nil, fmt.Errorf("cannot create the container: %s", b.reason())
		case !c.Wanted():
			return nil, errors.New("the step was canceled before its container was created")
		case time.Now().After(end):
			return nil, fmt.Errorf("%s did not create the container within %s", b.runtime.Kind, makeTimeout)
		}
	}
}

func (b *box) welcome(c Config, fd int) (*os.File, error) {
	conn := os.NewFile(uintptr(fd), "connection")
	peer, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	stdin := c.Stdin
	if err == nil && stdin == nil {
		if stdin, err = os.Open(os.DevNull); err == nil {
			defer stdin.Close()
		}
	}
	if err == nil {
		rights := syscall.UnixRights(int(stdin.Fd()), int(c.Stdout.Fd()), int(c.Stderr.Fd()))
		err = syscall.Sendmsg(fd, []byte{0}, rights, nil, 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the container: %w", err), conn.Close())
	}
	b.peer = int(peer.Pid)
	return conn, nil
}

// first identifies the process by the kernel's credentials of the connection's peer.
func (b *box) first(int, *os.File) (process.ID, error) {
	if b.peer == 0 {
		return process.ID{}, fmt.Errorf("the container is not on this machine, where %s must run it", b.runtime.Kind)
	}
	first, err := process.IDOf(b.peer)
	if err != nil {
		return process.ID{}, fmt.Errorf("find the container: %w", err)
	}
	return first, nil
}

func (b *box) container() string { return b.name }

func (b *box) place() *place.Mounts { return nil }

func (b *box) reason() string {
	if b.stderr != nil {
		if line := container.Reason(b.stderr.beginning()); line != "" {
			return line
		}
	}
	return string(b.runtime.Kind) + " did not say why"
}

// close removes the container itself only if the runtime's command could not.
func (b *box) close(abandoned bool) error {
	if b.stderr != nil {
		b.stderr.end()
	}
	var err error
	if b.listener >= 0 {
		err = syscall.Close(b.listener)
	}
	if abandoned {
		err = errors.Join(err, b.runtime.Remove(context.Background(), b.name))
	}
	return errors.Join(err, os.RemoveAll(b.dir), os.RemoveAll(b.temp))
}
