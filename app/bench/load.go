package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// sample is how long each of many operations took.
type sample struct {
	took    []time.Duration // sorted
	elapsed time.Duration
}

func (s sample) rate() float64 { return float64(len(s.took)) / s.elapsed.Seconds() }

// quantile gives a latency in milliseconds.
func (s sample) quantile(q float64) float64 {
	if len(s.took) == 0 {
		return 0
	}
	return milliseconds(s.took[min(len(s.took)-1, int(q*float64(len(s.took))))])
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// worker makes the operation of one client, and what ends the client.
type worker func(n int) (op func() error, end func(), err error)

// closed lets clients work for some time, each one operation after the other,
// and at least one.
func closed(ctx context.Context, clients int, d time.Duration, open worker) (sample, error) {
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
