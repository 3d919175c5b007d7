package algorithm

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

	"molrun/app/protocol"
)

// Confine makes a command run in a sandbox, in which it reads these files and what
// the algorithm allows. done clears up when it has ended, or was not started.
type Confine func(c *exec.Cmd, may protocol.Sandbox, files []string) (done func(), err error)

// runValidator runs a program in an empty folder of its own, with nothing of
// the service's environment but PATH. It and what it started are gone when
// runValidator returns.
func (a *File) runValidator(ctx context.Context, confine Confine, call validatorCall) (output []byte, err error) {
	home, err := os.MkdirTemp("", "molrun-validate-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	ctx, tooMuch := context.WithCancel(ctx)
	defer tooMuch()
	stdout, stderr := &boundedBuffer{most: validatorOutput, full: tooMuch}, &boundedBuffer{most: maxDetailText}
	cmd := exec.CommandContext(ctx, call.argv[0], call.argv[1:]...)
	cmd.Dir = home
	cmd.Env = []string{"PATH=" + searchPath(), "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(call.input), stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if confine != nil {
		done, err := confine(cmd, a.Sandbox, call.files)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	err = cmd.Wait()
	if killErr := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); killErr != nil && !errors.Is(killErr, syscall.ESRCH) {
		err = errors.Join(err, killErr)
	}
	switch {
	case stdout.overflown():
		return nil, fmt.Errorf("more than %d bytes of output", validatorOutput)
	case err != nil && stderr.size() > 0:
		err = fmt.Errorf("%w: %s", err, cleanText(stderr.bytes(), maxDetailText))
	}
	return stdout.bytes(), err
}

// searchPath is where programs are looked for.
func searchPath() string {
	if path := os.Getenv("PATH"); path != "" {
		return path
	}
	return "/usr/local/bin:/usr/bin:/bin"
}

// boundedBuffer keeps the first bytes that a program writes, and calls full
// once there are more.
type boundedBuffer struct {
	most int
	full func() // may be nil
	mu   sync.Mutex
	kept []byte
	over bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	room := min(b.most-len(b.kept), len(p))
	b.kept = append(b.kept, p[:room]...)
	if room < len(p) && !b.over {
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

func (b *boundedBuffer) size() int { return len(b.bytes()) }

func (b *boundedBuffer) overflown() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over
}
