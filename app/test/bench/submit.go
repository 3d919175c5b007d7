package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// measureSync measures how fast the disk is.
func measureSync(ctx context.Context, b *testbed, f figures) error {
	s, err := limitSync(ctx, b.dir, b.Duration/4)
	f["sync.p50"], f["sync.p99"] = s.quantile(.5), s.quantile(.99)
	return err
}

// measureSubmit compares durable submissions by many clients with bare commits.
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

// measureSubmitOne compares the submissions of a single client with bare commits of a
// single client.
func measureSubmitOne(ctx context.Context, b *testbed, f figures) error {
	limit, err := limitCommits(ctx, b.dir, 1, b.Duration/2)
	if err != nil {
		return err
	}
	s, err := closedLoop(ctx, 1, b.Duration/2, b.queue.submitting())
	f["commit1.p50"], f["submit1.p50"], f["submit1.p99"] = limit.quantile(.5), s.quantile(.5), s.quantile(.99)
	return err
}

// crowdOfListeners is the number of event streams.
const crowdOfListeners = 1000

// measureListeners compares submissions of many clients with and without a thousand event
// streams. The streams follow either a user's own jobs, so that they receive no events,
// or all jobs. It also measures a server with such streams and no other load.
func measureListeners(ctx context.Context, b *testbed, f figures) error {
	if err := measureIdleListeners(ctx, b, f); err != nil {
		return err
	}
	other, err := b.queue.otherUser(ctx)
	if err != nil {
		return err
	}
	for name, path := range map[string]string{"own": "/events", "all": "/events?organization=true"} {
		if err := b.submitBesideListeners(ctx, other, path, name, f); err != nil {
			return err
		}
	}
	return nil
}

// submitBesideListeners measures submissions with event streams, and before and after
// that without any.
func (b *testbed) submitBesideListeners(ctx context.Context, other *server, path, name string, f figures) error {
	var rates, costs [3]float64
	for i := range rates {
		var l *listening
		var err error
		if i == 1 {
			if l, err = other.listen(path); err != nil {
				return err
			}
		}
		var done sample
		cpu, err := cpuDuring(func() (err error) {
			done, err = closedLoop(ctx, crowd, b.Duration, b.queue.submitting())
			return err
		}, b.queue.pid())
		if err := errors.Join(err, l.close()); err != nil {
			return err
		}
		rates[i], costs[i] = done.rate(), microseconds(cpu)/float64(len(done.took))
	}
	f["listeners."+name+".rate"], f["listeners."+name+".without"] = rates[1], (rates[0]+rates[2])/2
	f["listeners."+name+".cpu"], f["listeners."+name+".without.cpu"] = costs[1], (costs[0]+costs[2])/2
	return nil
}

// measureIdleListeners measures the cost of a thousand streams that receive no events.
func measureIdleListeners(ctx context.Context, b *testbed, f figures) error {
	s := b.small
	if _, err := s.restart(ctx); err != nil {
		return err
	}
	before, err := anonymousMemory(s.pid())
	if err != nil {
		return err
	}
	l, err := s.listen("/events")
	if err != nil {
		return err
	}
	settled := pause(ctx, time.Second) // waits until the server has finished opening the streams
	after, err := anonymousMemory(s.pid())
	cpu, cpuErr := cpuDuring(func() error { return pause(ctx, b.Duration) }, s.pid())
	f["listeners.memory"], f["listeners.cpu"] = after-before, milliseconds(cpu)/b.Duration.Seconds()
	return errors.Join(settled, err, cpuErr, l.close())
}

// listening is a set of open event streams.
type listening struct {
	conns []net.Conn
	all   sync.WaitGroup
}

// listen opens the streams and waits until the server has confirmed each.
func (s *server) listen(path string) (*listening, error) {
	l := &listening{}
	request := s.get(path)
	for range crowdOfListeners {
		c, err := net.DialTimeout("tcp", s.address, patience)
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		l.conns = append(l.conns, c)
		if _, err := c.Write(request); err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	for _, c := range l.conns {
		_ = c.SetReadDeadline(time.Now().Add(patience))
		begin := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(c, begin); err != nil || string(begin) != "HTTP/1.1 200" {
			return nil, errors.Join(fmt.Errorf("a stream begins with %q", begin), err, l.close())
		}
		l.all.Go(func() {
			_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, 4<<10))
		}) // until the stream is closed
	}
	return l, nil
}

// close closes the streams. It does nothing on nil.
func (l *listening) close() error {
	if l == nil {
		return nil
	}
	var errs []error
	for _, c := range l.conns {
		errs = append(errs, c.Close())
	}
	l.all.Wait()
	return errors.Join(errs...)
}
