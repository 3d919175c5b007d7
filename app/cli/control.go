package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/config"
	"molrun/app/fault"
	"molrun/web"
	"molrun/web/client"
	"molrun/web/edge"
)

// The operator's socket, in the data directory. Whoever may open it (mode
// 0600) is the operator.
const socketName = "control.sock"

// commandSocket is where a command talks to itself while no server runs. It
// has a name of its own, so that no other command finds it and is cut off
// when this one is done: the others wait for the database.
const commandSocket = "command.sock"

// listenControl makes a socket in the data directory anew. The caller holds
// the database, so one that is there was left by a process that is gone.
func listenControl(data, name string) (net.Listener, error) {
	dir, err := os.Open(data)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	defer dir.Close()
	if err := os.Remove(filepath.Join(data, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	// The short name fits the 107 bytes of a socket's address, however long that of
	// the data directory is.
	short := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	listener.SetUnlinkOnClose(false) // the name is gone by then; the next start removes it
	if err := os.Chmod(filepath.Join(data, name), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), listener.Close())
	}
	return listener, nil
}

// operatorPatience bounds the wait for another command that holds the data
// directory just now.
const operatorPatience = 15 * time.Second

// withControl runs fn against the server of the data directory. Where none
// runs, the command takes the directory for itself until fn is done, so that
// commands work the same and two at once take turns.
func withControl(ctx context.Context, c config.Config, fn func(context.Context, *client.Control) error) error {
	ctx, cancel := context.WithTimeout(ctx, operatorPatience)
	defer cancel()
	return withLongControl(ctx, c, fn)
}

// withLongControl is withControl for what may take long; fn bounds each of its
// requests.
func withLongControl(ctx context.Context, c config.Config, fn func(context.Context, *client.Control) error) error {
	for patience := time.Now().Add(operatorPatience); ; {
		if conn, err := client.DialControl(ctx, filepath.Join(c.Data, socketName)); err == nil {
			conn.Close()
			return fn(ctx, controlClient(c.Data))
		}
		s, err := openService(c, zerolog.Nop())
		if err == nil {
			return errors.Join(s.operate(ctx, fn), s.close())
		}
		if !errors.Is(err, fault.Unavailable) || ctx.Err() != nil || time.Now().After(patience) {
			return err
		}
	}
}

func controlClient(data string) *client.Control {
	return client.NewControl(filepath.Join(data, socketName))
}

// operate runs fn against this process, over a socket that lasts as long.
func (s *service) operate(ctx context.Context, fn func(context.Context, *client.Control) error) error {
	listener, err := listenControl(s.config.Data, commandSocket)
	if err != nil {
		return err
	}
	socket := filepath.Join(s.config.Data, commandSocket)
	server := edge.Server(s.control())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	err = errors.Join(fn(ctx, client.NewControl(socket)), drain(operatorPatience, server), os.Remove(socket))
	if closed := <-ended; !errors.Is(closed, http.ErrServerClosed) {
		err = errors.Join(err, closed)
	}
	return err
}

// control gives the handler of the operator's routes for keys and secret.
func (s *service) control() http.Handler {
	return web.Control(s.app, s.keeper, web.ControlOptions{
		Log: s.log, Audit: s.audit.add, RotateSecret: s.files.RotateSecret, Isolation: s.isolation,
	})
}
