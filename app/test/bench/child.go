package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// child is a process that runs until it is stopped.
type child struct {
	name  string // for error messages
	cmd   *exec.Cmd
	ended chan error
}

// startChild starts a command in its own process group, so that Ctrl-C in the terminal
// signals only bench, which then stops its children.
func startChild(name string, c *exec.Cmd) (*child, error) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &child{name: name, cmd: c, ended: make(chan error, 1)}
	go func() { p.ended <- c.Wait() }()
	return p, nil
}

// await retries the probe until it succeeds. If the process exits instead, the
// error quotes its log.
func (p *child) await(ctx context.Context, probe func() error, log func() []byte) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for probe() != nil {
		select {
		case err := <-p.ended:
			p.ended <- err
			return fmt.Errorf("%s exited before it was ready: %w: %.2000s", p.name, err, log())
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", p.name, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

func (p *child) pid() int { return p.cmd.Process.Pid }

// stop ends the process. It does nothing on a nil child.
func (p *child) stop() error {
	if p == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.ended:
		return err
	case <-time.After(time.Minute):
		_ = p.cmd.Process.Kill()
		return errors.Join(fmt.Errorf("%s did not stop within a minute", p.name), <-p.ended)
	}
}

// connects returns a probe that succeeds once a process listens at the address.
func connects(address string) func() error {
	return func() error {
		c, err := dial(address)
		if err == nil {
			c.close()
		}
		return err
	}
}
