package sandbox

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

	"molrun/app/task/process"
)

// Probe tests whether bwrap can create a sandbox here, by creating one like that of a
// step: user namespaces might be prohibited, or a container might mask /proc. It returns
// sized if this bwrap, 0.8 or newer, can limit the size of shared memory and disable user
// namespaces.
func Probe(ctx context.Context, bwrap string) (sized bool, err error) {
	help, err := exec.CommandContext(ctx, bwrap, "--help").CombinedOutput()
	if err != nil {
		return false, fmt.Errorf("%s --help: %w", bwrap, err)
	}
	sized = bytes.Contains(help, []byte("--size ")) && bytes.Contains(help, []byte("--disable-userns"))
	dir, err := os.MkdirTemp("", "molrun-try-")
	if err != nil {
		return sized, err
	}
	defer os.RemoveAll(dir)
	temp, err := os.MkdirTemp(dir, "tmp-")
	if err != nil {
		return sized, err
	}
	v := &view{work: dir, temp: temp}
	if sized {
		v.shmBytes = 1 << 20
	}
	return sized, probe(ctx, bwrap, v)
}

// probe creates a sandbox, waits until its first process is ready, and lets it exit.
func probe(ctx context.Context, bwrap string, v *view) error {
	d := openDescriptors(nil)
	defer d.close()
	d.addFiles(d.stdin, d.stdin)
	d.names(v)
	if d.err != nil {
		return d.err
	}
	c := exec.CommandContext(ctx, bwrap, v.initArguments()...)
	var output bytes.Buffer
	c.Stderr, c.ExtraFiles, c.Env, c.WaitDelay = &output, d.files, []string{}, time.Second
	if err := c.Start(); err != nil {
		return err
	}
	// Leave the other end of the connection to the sandbox only: if it dies, the read
	// below returns.
	for _, f := range d.opened {
		f.Close()
	}
	var e event
	err := d.conn.SetDeadline(time.Now().Add(startTimeout))
	if err == nil {
		err = json.NewDecoder(d.conn).Decode(&e)
	}
	d.conn.Close() // makes the process inside exit
	err = errors.Join(c.Wait(), err)
	if err != nil && strings.TrimSpace(output.String()) != "" {
		return errors.New(firstLine(output.String()))
	}
	return err
}

// ProbeCgroup tests whether tasks can have cgroups below parent, by starting a process in
// one and killing it there.
func ProbeCgroup(ctx context.Context, parent string) (err error) {
	g, err := process.MakeCgroup(parent, fmt.Sprintf("try-%d", os.Getpid()), process.CgroupLimits{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Remove()) }()
	dir, err := g.OpenDir()
	if err != nil {
		return err
	}
	defer dir.Close()
	d := openDescriptors(nil)
	defer d.close()
	if d.err != nil {
		return d.err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, process.Self, "task", "--inside") // waits for a command
	c.ExtraFiles, c.Env, c.WaitDelay = d.files, []string{}, time.Second
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if err := c.Start(); err != nil {
		return fmt.Errorf("start a process in a cgroup: %w", err)
	}
	killed := g.Kill()
	if killed != nil {
		c.Process.Kill()
	}
	var exit *exec.ExitError
	if waited := c.Wait(); killed == nil && !errors.As(waited, &exit) {
		return errors.New("a process survived the kill of its cgroup")
	}
	return killed
}
