package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
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
	*child
	address string
}

func startBare(ctx context.Context, dir string) (*bare, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	process, err := startChild("the bare server", exec.Command(program, "bare", "--files", dir, "--listen", address))
	if err != nil {
		return nil, err
	}
	return &bare{process, address}, process.await(ctx, connects(address), func() []byte { return nil })
}

func (s *bare) stop() error {
	if s == nil {
		return nil
	}
	return s.child.stop()
}
