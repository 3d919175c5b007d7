package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"molrun/app/server/config"
)

// abandonAfter limits the wait for a request whose connection was closed.
const abandonAfter = 10 * time.Second

// StopTimeout returns the maximum time that the service takes to stop.
func StopTimeout(c config.Config) time.Duration {
	return time.Duration(c.Stop.Requests) + 2*abandonAfter
}

// requests tracks the requests in progress. Files and records are closed only when all
// have ended, including those whose connections were closed: net/http does not wait for
// these.
type requests struct{ running sync.WaitGroup }

// counted returns a handler whose requests are tracked.
func (r *requests) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.running.Add(1)
		defer r.running.Done()
		next.ServeHTTP(w, request)
	})
}

// drain stops accepting requests, lets running ones finish within the time limit, and
// closes the connections of the rest.
func (r *requests) drain(within time.Duration, servers ...*http.Server) error {
	err := shutdown(within, servers...)
	ended := make(chan struct{})
	go func() { // outlives drain only if a request hangs, and then until the process exits
		r.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return err
	case <-time.After(abandonAfter):
		return errors.Join(err, errors.New("a request did not end although its connection was closed"))
	}
}

// shutdown shuts down the servers concurrently, within a common time limit.
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
