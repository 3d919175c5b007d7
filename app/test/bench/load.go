package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// crowd is the number of clients that submit concurrently.
const crowd = 64

// client starts client number n. It returns the client's operation and a function that
// closes the client.
type client func(n int) (op func() error, end func(), err error)

// local returns a client that needs no connection.
func local(op func() error) client {
	return func(int) (func() error, func(), error) { return op, func() {}, nil }
}

// connected returns a client that opens its own connection.
func connected(address string, operation func(c *conn, n int) func() error) client {
	return func(n int) (func() error, func(), error) {
		c, err := dial(address)
		if err != nil {
			return nil, nil, err
		}
		return operation(c, n), c.close, nil
	}
}

// closedLoop runs clients for a duration. Each client starts its next operation when the
// previous one has returned, and performs at least one.
func closedLoop(ctx context.Context, clients int, d time.Duration, open client) (sample, error) {
	took, errs := make([][]time.Duration, clients), make([]error, clients)
	var all sync.WaitGroup
	ready, start := sync.WaitGroup{}, make(chan struct{})
	ready.Add(clients)
	var began time.Time
	for n := range clients {
		all.Go(func() {
			op, end, err := open(n)
			ready.Done()
			if err != nil {
				errs[n] = err
				return
			}
			defer end()
			<-start
			for first := true; first || ctx.Err() == nil && time.Since(began) < d; first = false {
				t := time.Now()
				if errs[n] = op(); errs[n] != nil {
					return
				}
				took[n] = append(took[n], time.Since(t))
			}
		})
	}
	ready.Wait()
	began = time.Now()
	close(start)
	all.Wait()
	s := sample{elapsed: time.Since(began), took: slices.Concat(took...)}
	slices.Sort(s.took)
	for _, err := range errs {
		if err != nil {
			return s, err
		}
	}
	return s, ctx.Err()
}

// sample holds the latencies of a set of operations.
type sample struct {
	took    []time.Duration // sorted
	elapsed time.Duration
}

// rate returns operations per second.
func (s sample) rate() float64 { return float64(len(s.took)) / s.elapsed.Seconds() }

// quantile returns a latency in milliseconds.
func (s sample) quantile(q float64) float64 {
	if len(s.took) == 0 {
		return 0
	}
	return milliseconds(s.took[min(len(s.took)-1, int(q*float64(len(s.took))))])
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// pause sleeps for d, or until the context ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
