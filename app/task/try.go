package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// TryBubblewrap finds out whether bwrap can make a sandbox here, by making one
// as for a program: user namespaces may be forbidden, /proc may be masked in a
// container. The program is this one's path. Sized says that this bwrap can
// bound the size of shared memory.
func TryBubblewrap(ctx context.Context, bwrap, program string) (sized bool, err error) {
	help, err := exec.CommandContext(ctx, bwrap, "--help").CombinedOutput()
	if err != nil {
		return false, fmt.Errorf("%s --help: %w", bwrap, err)
	}
	sized = bytes.Contains(help, []byte("--size "))
	dir, err := os.MkdirTemp("", "molrun-try-")
	if err != nil {
		return sized, err
	}
	defer os.RemoveAll(dir)
	temp, err := os.MkdirTemp(dir, "tmp-")
	if err != nil {
		return sized, err
	}
	p := &profile{work: dir, temp: temp}
	if sized {
		p.shmBytes = 1 << 20
	}
	return sized, try(ctx, bwrap, program, p)
}

// try makes the sandbox, waits until the process inside is there, and lets go.
func try(ctx context.Context, bwrap, program string, p *profile) error {
	d := openDescriptors(program)
	defer d.close()
	d.add(d.null, d.null)
	d.accounts()
	if d.err != nil {
		return d.err
	}
	args := p.arguments()
	c := exec.CommandContext(ctx, bwrap, args...)
	var said bytes.Buffer
	c.Stderr, c.ExtraFiles, c.Env, c.WaitDelay = &said, d.files, []string{}, time.Second
	if err := c.Start(); err != nil {
		return err
	}
	line := d.own
	// Only the other process has its end now: should it end, so does the wait.
	for _, f := range d.opened {
		f.Close()
	}
	var n notice
	err := line.SetDeadline(time.Now().Add(boxPatience))
	if err == nil {
		err = json.NewDecoder(line).Decode(&n)
	}
	line.Close() // the process inside ends
	if waited := c.Wait(); waited != nil || err != nil {
		return tryFailed(said.String(), errors.Join(waited, err))
	}
	return nil
}

func tryFailed(said string, err error) error {
	if strings.TrimSpace(said) != "" {
		return errors.New(firstLine(said))
	}
	return err
}

// TryCgroup finds out whether tasks can have cgroups below parent, by starting a
// process in one and killing it there. The program is this one's path.
func TryCgroup(ctx context.Context, parent, program string) (err error) {
	g, err := makeGroup(parent, fmt.Sprintf("try-%d", os.Getpid()), groupLimits{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.remove()) }()
	dir, err := os.Open(g.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	d := openDescriptors(program)
	defer d.close()
	if d.err != nil {
		return d.err
	}
	ctx, cancel := context.WithTimeout(ctx, boxPatience)
	defer cancel()
	c := exec.CommandContext(ctx, program, "task", "--inside") // it waits for an order
	c.ExtraFiles, c.Env, c.WaitDelay = d.files, []string{}, time.Second
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if err := c.Start(); err != nil {
		return fmt.Errorf("start a process in a cgroup: %w", err)
	}
	killed := g.kill()
	if killed != nil {
		c.Process.Kill()
	}
	var exit *exec.ExitError
	if waited := c.Wait(); killed == nil && !errors.As(waited, &exit) {
		return errors.New("a process in a killed cgroup lived on")
	}
	return killed
}
