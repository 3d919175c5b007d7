package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// transfer is the total that a set of clients transferred.
type transfer struct {
	bytes   int64
	elapsed time.Duration
	cpu     time.Duration // of the server
}

const mebibyte, gibibyte = 1 << 20, 1 << 30

// rate returns MiB per second; cost returns CPU seconds per GiB.
func (t transfer) rate() float64 { return float64(t.bytes) / mebibyte / t.elapsed.Seconds() }
func (t transfer) cost() float64 { return t.cpu.Seconds() / (float64(t.bytes) / gibibyte) }

// source is a server that clients download from.
type source struct {
	name, address string
	pids          []int  // whose CPU time counts
	path          string // of the payload
}

// fetch runs clients that send the requests in turn for a duration.
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

// sources returns the servers to compare.
func sources(b *testbed) []source {
	all := []source{
		{"bare", b.bare.address, []int{b.bare.process.pid()}, "/payload"},
		{"molrun", b.jobs.address, []int{b.jobs.pid()}, b.download},
	}
	if b.peer == nil {
		return all
	}
	return append([]source{{"nginx", b.peer.address, b.peer.pids(), "/payload"}}, all...)
}

// measureDownload compares downloads of a whole file.
func measureDownload(ctx context.Context, b *testbed, f figures) error {
	for _, clients := range []int{1, 4} {
		for _, s := range sources(b) {
			t, err := s.fetch(ctx, clients, b.Duration/2, requestHead("GET", s.path, "", 0))
			if err != nil {
				return err
			}
			name := fmt.Sprintf("download%d.%s", clients, s.name)
			f[name], f[name+".cpu"] = t.rate(), t.cost()
		}
	}
	return nil
}

// measureRanges compares downloads of 1 MiB at random offsets.
func measureRanges(ctx context.Context, b *testbed, f figures) error {
	r, length := rand.New(rand.NewPCG(5, 6)), min(mebibyte, b.payload.size)
	for _, s := range sources(b) {
		var requests [][]byte
		for range 256 {
			from := r.Int64N(b.payload.size - length + 1)
			requests = append(requests, requestHead("GET", s.path, fmt.Sprintf("Range: bytes=%d-%d\r\n", from, from+length-1), 0))
		}
		t, err := s.fetch(ctx, 8, b.Duration/2, requests...)
		if err != nil {
			return err
		}
		f["ranges."+s.name], f["ranges."+s.name+".cpu"] = t.rate(), t.cost()
	}
	return nil
}
