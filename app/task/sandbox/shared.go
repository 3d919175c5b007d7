package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"molrun/app/task/place"
	"molrun/app/task/process"
	"molrun/app/task/protocol"
)

// Shared is one sandbox for many steps that run one after the other. Each sees its own
// work directory, /tmp and /dev/shm, and nothing that another one left: the first process
// gives each step its own mount and IPC namespaces (place), and no step gets a slot
// before every process of the previous one has exited. They share the user, PID and
// network namespaces. Starting a step in it takes a twentieth of the time of a separate
// sandbox.
type Shared struct {
	PID   int        // of bwrap
	First process.ID // the first process inside

	seen    string          // by all steps
	kinds   map[string]bool // kinds of steps, and whether they can run in it
	above   string          // folder of all work directories
	kept    []string
	control *os.File
	stderr  *stderr
	reaped  bool    // PID was reaped
	broken  bool    // it is exiting or has exited
	used    float64 // CPU seconds of the completed steps
}

// sharedView returns what the first process of a shared sandbox sees for steps like this
// one: the folder above instead of one work directory.
func (c Config) sharedView(p Program, above string) (*view, error) {
	v, err := c.seen(p)
	if err != nil {
		return nil, err
	}
	v.work, v.readOnly, v.shmBytes, v.shared, v.cgroups, v.closed = above, nil, 0, true, c.Cgroup != nil, c.Sized
	return v, nil
}

// incompatible reports whether the folder above would hide, or be hidden by, what
// programs see.
func (v *view) incompatible() bool {
	made := slices.Concat(systemFolders, v.read, []string{place.Temp, "/var", "/run", "/proc", "/dev", etc, systemTopology, optional})
	return slices.ContainsFunc(made, func(path string) bool { return isBelow(path, v.work) }) ||
		slices.ContainsFunc(v.read, func(path string) bool { return isBelow(path, "/var/tmp") || isBelow(path, "/dev/shm") })
}

// CanHost reports whether a step can run in the shared sandbox, if there is one.
func (s *Shared) CanHost(c Config, p Program) bool {
	if s == nil || s.broken || !isBelow(c.Work, s.above) || c.Work == s.above {
		return false
	}
	kind := c.kind(p)
	fits, known := s.kinds[kind]
	if !known {
		v, err := c.sharedView(p, s.above)
		fits = err == nil && c.seenBy(v) == s.seen
		s.kinds[kind] = fits
	}
	return fits
}

// seenBy returns a string that identifies what steps see.
func (c Config) seenBy(v *view) string {
	return strings.Join(append(v.initArguments(), c.Bubblewrap), "\x00")
}

// kind returns a string that is equal for all steps that see the same, apart from their
// private files.
func (c Config) kind(p Program) string {
	program := p.Path
	if isBelow(program, c.Work) {
		program = ""
	}
	text, err := json.Marshal(struct {
		Bubblewrap, Own, Program, Path string
		Allowed                        protocol.Sandbox
		Hide, GPUs                     []string
	}{c.Bubblewrap, c.Own, program, process.Variable(p.Env, "PATH"), c.Allowed, c.Hide, c.GPUs})
	if err != nil {
		panic(err) // unreachable: JSON can represent every field
	}
	return string(text)
}

// MakeShared creates a sandbox for steps like this one, whose work directories are below
// a folder. Its errors are place.ErrIncompatible.
func MakeShared(c Config, p Program, above string) (_ *Shared, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: %w", place.ErrIncompatible, err)
		}
	}()
	v, err := c.sharedView(p, above)
	if err != nil {
		return nil, err
	}
	if v.incompatible() {
		return nil, fmt.Errorf("%s overlaps with paths that programs see", above)
	}
	s := &Shared{seen: c.seenBy(v), kinds: map[string]bool{}, above: above}
	for _, path := range v.read {
		if isBelow(path, place.Temp) {
			s.kept = append(s.kept, path)
		}
	}
	if err := s.startInit(c, v); err != nil {
		return nil, err
	}
	if err := s.await(); err != nil {
		return nil, errors.Join(err, s.Discard())
	}
	return s, nil
}

func (s *Shared) startInit(c Config, v *view) error {
	d := openDescriptors(nil)
	defer d.close()
	d.addFiles(d.stdin, d.stdin) // each step has its own streams
	d.names(v)
	d.captureStderr()
	if d.err != nil {
		return fmt.Errorf("prepare the sandbox: %w", d.err)
	}
	pid, err := c.Fork(c.Bubblewrap, append([]string{"bwrap"}, v.initArguments()...), &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: d.fds(),
	})
	if err != nil {
		return fmt.Errorf("start bubblewrap: %w", err)
	}
	s.PID = pid
	s.control, s.stderr = d.release()
	return nil
}

// await waits until the first process is ready.
func (s *Shared) await() error {
	if err := s.control.SetDeadline(time.Now().Add(startTimeout)); err != nil {
		return err
	}
	var e event
	if err := json.NewDecoder(s.control).Decode(&e); err != nil || !e.Ready {
		return fmt.Errorf("the sandbox can't be set up: %s", reason(s.stderr))
	}
	var err error
	if s.First, err = childOf(s.PID); err != nil {
		return err
	}
	return s.control.SetDeadline(time.Time{})
}

// AddUsage records the usage of a completed step.
func (s *Shared) AddUsage(u Usage) { s.used += u.CPUSeconds }

// Alive returns PID, or 0 if it was reaped or there is no sandbox.
func (s *Shared) Alive() int {
	if s == nil || s.reaped {
		return 0
	}
	return s.PID
}

// Gone records that the process PID was reaped. It returns the CPU seconds of the
// completed steps, which the kernel has now counted for this process.
func (s *Shared) Gone() float64 {
	s.reaped, s.broken = true, true
	return s.used
}

// Discard ends the sandbox, in which no step is running. It does not reap other children
// of this process.
func (s *Shared) Discard() error {
	s.broken = true
	err := s.control.Close() // ends the first process
	for end := time.Now().Add(endTimeout); !s.reaped && time.Now().Before(end); {
		pid, err := syscall.Wait4(s.PID, nil, syscall.WNOHANG, nil)
		if s.reaped = pid == s.PID || errors.Is(err, syscall.ECHILD); s.reaped {
			break
		}
		time.Sleep(killPause / 10)
	}
	if !s.reaped {
		syscall.Kill(s.PID, syscall.SIGKILL)
		err = errors.Join(err, errors.New("the shared sandbox did not exit and was killed"))
	}
	s.stderr.end()
	return err
}

// sharedSlot is the wrapper of a step in a shared sandbox.
type sharedSlot struct {
	shared *Shared
	config Config
	temp   string // mounted as /tmp
}

func (s *Shared) slot(c Config) (wrapper, error) {
	temp, err := os.MkdirTemp(c.Work, ".tmp-")
	if err != nil {
		return nil, err
	}
	return &sharedSlot{s, c, temp}, nil
}

func (t *sharedSlot) start(Config) (pid int, err error) { return t.shared.PID, nil }

// connect sends the first process a connection for this step, with the program's standard
// files.
func (t *sharedSlot) connect(c Config, _ int) (*os.File, error) {
	d := openConnection(c.Stdin)
	defer d.close()
	if d.err != nil {
		return nil, fmt.Errorf("prepare the sandbox: %w", d.err)
	}
	send := []int{int(d.inside.Fd()), int(d.stdin.Fd()), int(c.Stdout.Fd()), int(c.Stderr.Fd())}
	if c.Cgroup != nil {
		send = append(send, int(c.Cgroup.Fd()))
	}
	if err := t.shared.control.SetWriteDeadline(time.Now().Add(startTimeout)); err != nil {
		return nil, err
	}
	if err := sendRights(t.shared.control, send); err != nil {
		return nil, fmt.Errorf("%w: %w", place.ErrIncompatible, err)
	}
	conn, _ := d.release()
	return conn, nil
}

// sendRights sends descriptors with one byte.
func sendRights(to *os.File, fds []int) error {
	raw, err := to.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Write(func(fd uintptr) bool {
		sent = syscall.Sendmsg(int(fd), []byte{0}, syscall.UnixRights(fds...), nil, syscall.MSG_NOSIGNAL)
		return sent != syscall.EAGAIN
	})
	return errors.Join(err, sent)
}

func (t *sharedSlot) first(int, *os.File) (process.ID, error) { return t.shared.First, nil }
func (t *sharedSlot) container() string                       { return "" }
func (t *sharedSlot) reason() string                          { return reason(t.shared.stderr) }

// place describes the mount namespace of the step.
func (t *sharedSlot) place() *place.Mounts {
	p := &place.Mounts{
		Above: t.shared.above, Kept: t.shared.kept, Work: t.config.Work, Temp: filepath.Base(t.temp),
		SharedMemoryBytes: t.config.SharedMemoryBytes, CPUs: t.config.CPUs,
	}
	for _, path := range t.config.ReadOnly {
		p.ReadOnly = append(p.ReadOnly, filepath.Base(path))
	}
	return p
}

// close keeps the shared sandbox, unless it was killed.
func (t *sharedSlot) close(abandoned bool) error {
	if abandoned {
		t.shared.broken = true
	}
	return os.RemoveAll(t.temp)
}
