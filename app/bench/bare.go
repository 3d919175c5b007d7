package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"syscall"
	"time"
)

// Bare serves the files of a folder with the standard library and nothing else,
// no link, no record, no log: what downloads can't pass in Go.
func Bare(ctx context.Context, dir, address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: http.FileServer(http.Dir(dir)), ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		err := s.Close()
		<-ended
		return err
	}
}

// bare is that server as a process of its own.
type bare struct {
	address string
	process *exec.Cmd
	ended   chan error
}

func startBare(ctx context.Context, program, dir string) (*bare, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &bare{address: address, process: exec.Command(program, "bench", "bare", "--files", dir, "--listen", address), ended: make(chan error, 1)}
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is ours to pass on
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	go func() { s.ended <- s.process.Wait() }()
	return s, s.answers(ctx)
}

func (s *bare) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		if c, err := dial(s.address); err == nil {
			c.close()
			return nil
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			return fmt.Errorf("the bare server ended at its start: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("wait for the bare server: %w", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *bare) stop() error {
	if s == nil {
		return nil
	}
	_ = s.process.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-s.ended:
		return err
	case <-time.After(30 * time.Second):
		_ = s.process.Process.Kill()
		return errors.Join(errors.New("the bare server did not stop"), <-s.ended)
	}
}
