package validator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"molrun/app/base/plaintext"
	"molrun/app/task/protocol"
)

// Confine limits a command that has not started yet, and makes it run in a sandbox in
// which it can read the given files and everything that the algorithm allows. done cleans
// up after the command has exited, or if it was never started.
type Confine func(c *exec.Cmd, may protocol.Sandbox, files []string) (done func(), err error)

func unconfined(*exec.Cmd, protocol.Sandbox, []string) (done func(), err error) {
	return func() {}, nil
}

// TempDir creates an empty directory.
type TempDir func() (path string, err error)

func systemTempDir() (string, error) { return os.MkdirTemp("", "molrun-validate-") }

var errTooMuch = fmt.Errorf("more than %d bytes of output", outputLimit)

// process returns a runFunc that runs a program in an empty directory. PATH is the only
// variable taken from the service's environment. The process and its children have exited
// when the runFunc returns; the process also exits with the service.
func (p *Pool) process(may protocol.Sandbox) runFunc {
	return func(ctx context.Context, c call) (output []byte, err error) {
		home, err := p.options.TempDir()
		if err != nil {
			return nil, fmt.Errorf("make a folder: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
		ctx, tooMuch := context.WithCancel(ctx)
		defer tooMuch()
		stdout, stderr := &boundedBuffer{most: outputLimit, full: tooMuch}, &boundedBuffer{most: maxDetailText}
		cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
		cmd.Dir = home
		cmd.Env = []string{"PATH=" + SearchPath(), "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8"}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(c.input), stdout, stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.WaitDelay = time.Second
		done, err := p.options.Confine(cmd, may, c.files)
		if err != nil {
			return nil, err
		}
		defer done()
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		err = cmd.Wait()
		if killErr := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); killErr != nil && !errors.Is(killErr, syscall.ESRCH) {
			err = errors.Join(err, killErr)
		}
		switch {
		case stdout.overflowed():
			return nil, errTooMuch
		case err != nil && len(stderr.bytes()) > 0:
			err = fmt.Errorf("%w: %s", err, plaintext.OneLine(stderr.bytes(), maxDetailText))
		}
		return stdout.bytes(), err
	}
}

// SearchPath returns the PATH used to find programs.
func SearchPath() string {
	if path := os.Getenv("PATH"); path != "" {
		return path
	}
	return "/usr/local/bin:/usr/bin:/bin"
}

// boundedBuffer keeps the first bytes that a program writes, and calls full once if there
// are more.
type boundedBuffer struct {
	most int
	full func() // can be nil
	mu   sync.Mutex
	kept []byte
	over bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(b.most-len(b.kept), len(p))
	b.kept = append(b.kept, p[:n]...)
	if n < len(p) && !b.over {
		b.over = true
		if b.full != nil {
			b.full()
		}
	}
	return len(p), nil
}

func (b *boundedBuffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.kept)
}

func (b *boundedBuffer) overflowed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over
}
