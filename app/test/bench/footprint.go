package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// measureMemory measures the server's memory while clients upload and download whole
// files.
func measureMemory(ctx context.Context, b *testbed, f figures) error {
	const each = 4
	s := source{address: b.jobs.address, pids: []int{b.jobs.pid()}}
	stop := peakMemory(b.jobs.pid())
	uploads := make([]upload, each)
	errs := make(chan error, 2*each)
	for n := range each {
		go func() {
			var err error
			uploads[n], err = b.payload.upload(b.jobs, fmt.Sprintf("memory-%d-%d.bin", time.Now().UnixNano(), n))
			errs <- err
		}()
		go func() {
			_, err := s.fetch(ctx, 1, 0, requestHead("GET", b.download, "", 0))
			errs <- err
		}()
	}
	var err error
	for range 2 * each {
		err = errors.Join(err, <-errs)
	}
	f["memory"] = stop()
	if err != nil {
		return err
	}
	for _, u := range uploads {
		if err := b.jobs.call(b.jobs.del("/files/"+u.id), nil); err != nil {
			return err
		}
	}
	return nil
}

// measureColdStart measures a restart of the server that has many jobs.
func measureColdStart(ctx context.Context, b *testbed, f figures) error {
	took, err := b.large.restart(ctx)
	if err != nil {
		return err
	}
	f["cold.first"] = milliseconds(took)
	if err := b.large.call(b.large.get(firstPage), nil); err != nil {
		return err
	}
	f["cold.memory"], err = anonymousMemory(b.large.pid())
	return err
}

// measureIdle measures the CPU use and memory of an idle server.
func measureIdle(ctx context.Context, b *testbed, f figures) error {
	pid := b.small.pid()
	before, err := wakeUps(pid)
	if err != nil {
		return err
	}
	cpu, err := cpuDuring(func() error { return pause(ctx, b.Duration) }, pid)
	if err != nil {
		return err
	}
	after, err := wakeUps(pid)
	if err != nil {
		return err
	}
	f["idle.wakeups"] = float64(after-before) / b.Duration.Seconds()
	f["idle.cpu"] = milliseconds(cpu) / b.Duration.Seconds()
	f["idle.memory"], err = anonymousMemory(pid)
	return err
}
