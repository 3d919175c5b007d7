package main

import (
	"context"
	"os"
)

// crowd is the number of clients that submit concurrently.
const crowd = 64

// measureSync shows how fast the disk is.
func measureSync(ctx context.Context, b *testbed, f figures) error {
	s, err := limitSync(ctx, b.dir, b.Duration/4)
	f["sync.p50"], f["sync.p99"] = s.quantile(.5), s.quantile(.99)
	return err
}

// measureSubmit compares durable submissions of many clients with bare commits.
func measureSubmit(ctx context.Context, b *testbed, f figures) error {
	var limit, s sample
	limitCPU, err := cpuDuring(func() (err error) {
		limit, err = limitCommits(ctx, b.dir, crowd, b.Duration)
		return err
	}, os.Getpid())
	if err != nil {
		return err
	}
	before, err := os.Stat(b.queue.database())
	if err != nil {
		return err
	}
	cpu, err := cpuDuring(func() (err error) {
		s, err = closedLoop(ctx, crowd, b.Duration, b.queue.submitting())
		return err
	}, b.queue.pid())
	if err != nil {
		return err
	}
	after, err := os.Stat(b.queue.database())
	if err != nil {
		return err
	}
	f["commit.rate"], f["commit.p50"], f["commit.p99"] = limit.rate(), limit.quantile(.5), limit.quantile(.99)
	f["commit.cpu"] = microseconds(limitCPU) / float64(len(limit.took))
	f["submit.rate"], f["submit.p50"], f["submit.p99"] = s.rate(), s.quantile(.5), s.quantile(.99)
	f["submit.cpu"] = microseconds(cpu) / float64(len(s.took))
	f["submit.bytes"] = float64(after.Size()-before.Size()) / float64(len(s.took))
	return nil
}

// measureSubmitOne compares the submissions of one client with single commits.
func measureSubmitOne(ctx context.Context, b *testbed, f figures) error {
	limit, err := limitCommits(ctx, b.dir, 1, b.Duration/2)
	if err != nil {
		return err
	}
	s, err := closedLoop(ctx, 1, b.Duration/2, b.queue.submitting())
	f["commit1.p50"], f["submit1.p50"], f["submit1.p99"] = limit.quantile(.5), s.quantile(.5), s.quantile(.99)
	return err
}
