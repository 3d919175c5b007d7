package main

import (
	"context"
	"time"
)

// transfer is the sum of what some clients moved.
type transfer struct {
	bytes   int64
	elapsed time.Duration
	cpu     time.Duration // of the server
}

const mebibyte, gibibyte = 1 << 20, 1 << 30

// rate is in MiB per second, cost in CPU seconds per GiB.
func (t transfer) rate() float64 { return float64(t.bytes) / mebibyte / t.elapsed.Seconds() }
func (t transfer) cost() float64 { return t.cpu.Seconds() / (float64(t.bytes) / gibibyte) }

// source is a server that clients download from.
type source struct {
	name, address string
	pids          []int  // whose CPU time counts
	path          string // of the payload
}

// fetch lets clients send the requests in turn for a duration.
func (s source) fetch(ctx context.Context, clients int, d time.Duration, requests ...[]byte) (t transfer, err error) {
	lengths := make([]int64, clients)
	t.cpu, err = cpuDuring(func() error {
		all, err := closedLoop(ctx, clients, d, connected(s.address, func(c *conn, n int) func() error {
			next := n
			return func() error {
				next++
				length, err := c.discard(requests[next%len(requests)])
				lengths[n] += int64(length)
				return err
			}
		}))
		t.elapsed = all.elapsed
		return err
	}, s.pids...)
	for _, l := range lengths {
		t.bytes += l
	}
	return t, err
}
