package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"

	"molrun/app/test/whole"
)

// serveBare serves the files of a directory with the standard library alone: no links, no
// database, no log. It shows how fast downloads in Go can be.
func serveBare(ctx context.Context, dir, address string) error {
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

// bareServer runs serveBare in its own process.
type bareServer struct {
	process *child
	address string
}

func startBare(ctx context.Context, dir string) (*bareServer, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	address, err := whole.FreeAddress()
	if err != nil {
		return nil, err
	}
	process, err := startChild("the bare server", exec.Command(program, "bare", "--files", dir, "--listen", address))
	if err != nil {
		return nil, err
	}
	return &bareServer{process, address}, process.await(ctx, connects(address), func() []byte { return nil })
}

func (s *bareServer) stop() error {
	if s == nil {
		return nil
	}
	return s.process.stop()
}
