package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"molrun/app/server/config"
)

// abandonAfter bounds the wait for a request whose connection was cut.
const abandonAfter = 10 * time.Second

// StopTimeout is how long the service may take to stop.
func StopTimeout(c config.Config) time.Duration {
	return time.Duration(c.Stop.Requests) + 2*abandonAfter
}

// requests counts the requests that are being answered. Files and records are
// closed only when all have ended, also those whose connections were cut: net/http
// does not wait for these.
type requests struct{ running sync.WaitGroup }

// counted returns a handler whose requests are counted.
func (r *requests) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.running.Add(1)
		defer r.running.Done()
		next.ServeHTTP(w, request)
	})
}

// drain accepts no more requests, lets the running ones end within the time, and
// cuts the connections of the rest.
func (r *requests) drain(within time.Duration, servers ...*http.Server) error {
	err := shutdown(within, servers...)
	ended := make(chan struct{})
	go func() { // outlives drain only if a request hangs, and then not the process
		r.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return err
	case <-time.After(abandonAfter):
		return errors.Join(err, errors.New("a request does not end though its connection was cut"))
	}
}

// shutdown shuts the servers down, all within the same time.
func shutdown(within time.Duration, servers ...*http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	errs := make([]error, len(servers))
	var all sync.WaitGroup
	for i, server := range servers {
		all.Go(func() {
			if err := server.Shutdown(ctx); err != nil {
				errs[i] = server.Close()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
