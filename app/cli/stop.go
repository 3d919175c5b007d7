package cli

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// abandonAfter bounds how long a request may take to notice that its
// connection was cut.
const abandonAfter = 10 * time.Second

// requests are those that are being answered. Files and records are closed only
// when all of them have ended, also those whose connections were cut: net/http
// does not wait for these.
type requests struct{ running sync.WaitGroup }

// counted gives a handler whose requests are waited for.
func (r *requests) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.running.Add(1)
		defer r.running.Done()
		next.ServeHTTP(w, request)
	})
}

// drain takes no more requests, lets the running ones end within the time, and
// cuts the rest.
func (r *requests) drain(within time.Duration, servers ...*http.Server) error {
	err := drain(within, servers...)
	ended := make(chan struct{})
	go func() { // outlives drain only where a request hangs, and then not the process
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

// drain shuts the servers down, all within the same time.
func drain(within time.Duration, servers ...*http.Server) error {
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
