package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// child is a process that serves until it is stopped.
type child struct {
	name  string // in errors
	cmd   *exec.Cmd
	ended chan error
}

// startChild starts it out of reach of an interrupt, which is ours to pass on.
func startChild(name string, c *exec.Cmd) (*child, error) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &child{name: name, cmd: c, ended: make(chan error, 1)}
	go func() { p.ended <- c.Wait() }()
	return p, nil
}

// await tries until it answers. Where it ends instead, words gives what it said.
func (p *child) await(ctx context.Context, try func() error, words func() []byte) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for try() != nil {
		select {
		case err := <-p.ended:
			p.ended <- err
			return fmt.Errorf("%s ended at its start: %w: %.2000s", p.name, err, words())
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", p.name, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

func (p *child) pid() int { return p.cmd.Process.Pid }

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

// connects is an answer of anything that listens there.
func connects(address string) func() error {
	return func() error {
		c, err := dial(address)
		if err == nil {
			c.close()
		}
		return err
	}
}
