package sandbox

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"molrun/app/task/place"
	"molrun/app/task/process"
)

// bubblewrap makes a sandbox from the machine's own files. The first process inherits the
// connection.
type bubblewrap struct {
	view   *view
	conn   *os.File
	stderr *stderr // of bwrap
}

func newBubblewrap(c Config, program Program) (wrapper, error) {
	v, err := c.view(program)
	if err != nil {
		return nil, err
	}
	return &bubblewrap{view: v}, nil
}

// view returns what the program sees. /tmp is a new folder each time: in that of an
// earlier step, a program could have created links for bwrap to follow.
func (c Config) view(program Program) (*view, error) {
	v, err := c.seen(program)
	if err == nil {
		v.temp, err = os.MkdirTemp(c.Work, ".tmp-")
	}
	return v, err
}

// seen returns the view without /tmp.
func (c Config) seen(program Program) (*view, error) {
	read, err := readable(program.Path, c.Own, c.Work, program.Env, c.Allowed.Read, namedFiles(c.Allowed.Named, c.Hide))
	if err != nil {
		return nil, err
	}
	return &view{
		work: c.Work, readOnly: c.ReadOnly, read: read, hide: c.Hide,
		devices: gpuDevices("/", c.cards()), network: c.Allowed.Network, shmBytes: c.SharedMemoryBytes,
	}, nil
}

// start starts bwrap. Its arguments and environment reveal nothing about the program: the
// first process inside receives that later.
func (b *bubblewrap) start(c Config) (pid int, err error) {
	d := openDescriptors(c.Stdin)
	defer d.close()
	d.addFiles(c.Stdout, c.Stderr)
	d.names(b.view)
	d.captureStderr()
	if d.err != nil {
		return 0, fmt.Errorf("prepare the sandbox: %w", d.err)
	}
	pid, err = c.Fork(c.Bubblewrap, append([]string{"bwrap"}, b.view.initArguments()...), &syscall.ProcAttr{
		Dir: "/", Env: []string{process.TokenVariable + "=" + c.Token}, Files: d.fds(),
	})
	if err != nil {
		return 0, fmt.Errorf("start bubblewrap: %w", err)
	}
	b.conn, b.stderr = d.release()
	return pid, nil
}

func (b *bubblewrap) connect(Config, int) (*os.File, error) { return b.conn, nil }

func (b *bubblewrap) first(pid int, _ *os.File) (process.ID, error) { return childOf(pid) }

// childOf returns the only child of bwrap.
func childOf(pid int) (process.ID, error) {
	children := process.Children(pid)
	if len(children) == 0 {
		return process.ID{}, errors.New("the sandbox has no process")
	}
	first, err := process.IDOf(children[0])
	if err != nil {
		return process.ID{}, fmt.Errorf("find the sandbox: %w", err)
	}
	return first, nil
}

func (b *bubblewrap) container() string { return "" }

func (b *bubblewrap) place() *place.Mounts { return nil }

func (b *bubblewrap) reason() string { return reason(b.stderr) }

// reason returns bwrap's error message.
func reason(stderr *stderr) string {
	if line := firstLine(stderr.beginning()); line != "" {
		return line
	}
	return "bubblewrap did not say why"
}

func (b *bubblewrap) close(bool) error {
	if b.stderr != nil {
		b.stderr.end()
	}
	return os.RemoveAll(b.view.temp)
}
