package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/client"
	"molrun/app/server/config"
	"molrun/app/server/host"
	"molrun/web/edge"
)

// WithControl runs fn against the service running on the data directory. If there is
// none, this process opens the directory until fn returns, so that a command works the
// same either way and concurrent commands run one after the other.
func WithControl(ctx context.Context, c config.Config, fn func(context.Context, *client.Control) error) error {
	ctx, cancel := context.WithTimeout(ctx, host.LockTimeout)
	defer cancel()
	return WithLongControl(ctx, c, fn)
}

// WithLongControl is WithControl for a command that can take a long time. fn limits the
// duration of each of its requests.
func WithLongControl(ctx context.Context, c config.Config, fn func(context.Context, *client.Control) error) error {
	for deadline := time.Now().Add(host.LockTimeout); ; {
		if host.Running(ctx, c.Data) {
			return fn(ctx, host.Control(c.Data))
		}
		if err := host.FindData(c.Data); err != nil {
			return err
		}
		s, err := openService(c, zerolog.Nop())
		if err == nil {
			return errors.Join(s.operate(ctx, fn), s.close())
		}
		if !errors.Is(err, fault.Unavailable) || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
	}
}

// commandSocket is the socket on which a command connects to itself while no service
// runs. Its name differs from that of the service's socket. Other commands therefore wait
// for the database, instead of using this socket and being cut off when this command
// finishes.
const commandSocket = "command.sock"

// operate runs fn against this process, over a socket that exists until fn returns.
func (s *service) operate(ctx context.Context, fn func(context.Context, *client.Control) error) error {
	listener, err := listenControl(s.config.Data, commandSocket)
	if err != nil {
		return err
	}
	socket := filepath.Join(s.config.Data, commandSocket)
	server := edge.Server(s.control("", ""))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	err = errors.Join(fn(ctx, client.NewControl(socket)), shutdown(host.LockTimeout, server), os.Remove(socket))
	if closed := <-ended; !errors.Is(closed, http.ErrServerClosed) {
		err = errors.Join(err, closed)
	}
	return err
}

// FinishLost opens a restored data directory as the service does and ends the attempts
// that were running when the backup was made, by the rules for lost attempts. It does not
// look for their processes, which ran elsewhere and might still be running. It returns
// the numbers of requeued and of failed jobs.
func FinishLost(ctx context.Context, config config.Config) (requeued, lost int, err error) {
	s, err := openService(config, zerolog.Nop())
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	jobs, err := s.app.Runs.Active(ctx)
	if err != nil {
		return 0, 0, err
	}
	for _, j := range jobs {
		err := s.app.Runs.Finish(ctx, j.ID, j.Attempts, app.Ending{Lost: "the service was restored from a backup"})
		if err != nil {
			return 0, 0, fmt.Errorf("finish job %s: %w", j.ID, err)
		}
	}
	err = s.store.View(ctx, func(tx app.Tx) error {
		requeued, lost = 0, 0
		for _, j := range jobs {
			now, err := tx.Job(j.ID)
			switch {
			case err != nil:
				return err
			case now.Status == app.Queued:
				requeued++
			default:
				lost++
			}
		}
		return nil
	})
	return requeued, lost, err
}
