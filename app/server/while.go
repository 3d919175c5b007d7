package server

import (
	"context"
	"errors"
	"fmt"

	"molrun/app/server/config"
)

// RunWhile runs the service on a free port of this machine until fn returns. It passes fn
// the address of the API. The context of fn also ends if the service does.
func RunWhile(ctx context.Context, c config.Config, o Options, fn func(ctx context.Context, baseURL string) error) error {
	c.Listen, c.PublicURL = "127.0.0.1:0", ""
	serving, stop := context.WithCancel(context.WithoutCancel(ctx)) // fn might have to clean up
	defer stop()
	started, ended := make(chan string, 1), make(chan error, 1)
	o.Started = func(baseURL string) { started <- baseURL }
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		err := Run(serving, c, o)
		cancel()
		ended <- err
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("start the service: %w", err)
	case base := <-started:
		err := fn(ctx, base)
		stop()
		return errors.Join(err, <-ended)
	}
}
