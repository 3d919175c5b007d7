package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// measureList compares pages of 50 jobs from a database of many jobs with pages from one
// of a thousand.
func measureList(ctx context.Context, b *testbed, f figures) error {
	d := b.Duration / 4
	for _, s := range []struct {
		*server
		name string
	}{{b.small, "small"}, {b.large, "large"}} {
		var first sample
		cpu, err := cpuDuring(func() (err error) {
			first, err = closedLoop(ctx, 1, d, s.calling(s.get(firstPage)))
			return err
		}, s.pid())
		if err != nil {
			return err
		}
		random, err := closedLoop(ctx, 1, d, s.calling(s.randomPages()...))
		if err != nil {
			return err
		}
		f["list."+s.name+".first"], f["list."+s.name+".random"] = first.quantile(.5), random.quantile(.5)
		f["list."+s.name+".p99"] = first.quantile(.99)
		f["list."+s.name+".cpu"] = microseconds(cpu) / float64(len(first.took))
	}
	return nil
}

// filters returns combinations of filters with many hits, with few hits far
// apart, and with none.
func filters() map[string][]filter {
	user, algorithm := seedUser(1), seedAlgorithm(0)
	return map[string][]filter{
		"many": {
			{user: user},
			{algorithm: algorithm},
			{status: "FAILED"},
			{user: user, algorithm: algorithm},
			{user: user, status: "FAILED"},
			{algorithm: algorithm, status: "FAILED"},
			{user: user, algorithm: algorithm, status: "COMPLETED"},
		},
		"few": {
			{user: rareUser},
			{algorithm: rareAlgorithm},
			{status: "RUNNING"},
			{user: rareUser, algorithm: algorithm},
			{user: rareUser, status: "FAILED"},
			{algorithm: rareAlgorithm, status: "FAILED"},
			{user: user, algorithm: rareAlgorithm, status: "COMPLETED"},
		},
		"none": {
			{user: absentUser},
			{algorithm: absentAlgorithm},
			{user: user, algorithm: absentAlgorithm},
			{user: user, status: "RUNNING"},
			{algorithm: algorithm, status: "RUNNING"},
			{user: absentUser, algorithm: algorithm, status: "COMPLETED"},
		},
	}
}

// measureFilters compares each combination of filters with the first page, and keeps the
// slowest ratio of each kind.
func measureFilters(ctx context.Context, b *testbed, f figures) error {
	for kind, all := range filters() {
		for _, one := range all {
			first, filtered, err := alternate(ctx, b.large.address, b.Duration/10, b.large.get(firstPage), b.large.get(one.path()))
			if err != nil {
				return fmt.Errorf("%s: %w", one.path(), err)
			}
			f["filter."+kind] = max(f["filter."+kind], filtered.quantile(.5)/first.quantile(.5))
		}
	}
	return nil
}

// alternate sends two requests in turn, so that noise affects both alike.
func alternate(ctx context.Context, address string, d time.Duration, one, other []byte) (a, b sample, err error) {
	c, err := dial(address)
	if err != nil {
		return a, b, err
	}
	defer c.close()
	const least = 20
	for began := time.Now(); ctx.Err() == nil && (len(b.took) < least || time.Since(began) < d); {
		for _, turn := range []struct {
			request []byte
			sample  *sample
		}{{one, &a}, {other, &b}} {
			t := time.Now()
			if _, err := c.do(turn.request); err != nil {
				return a, b, err
			}
			turn.sample.took = append(turn.sample.took, time.Since(t))
		}
	}
	slices.Sort(a.took)
	slices.Sort(b.took)
	return a, b, ctx.Err()
}

// A crowd is a set of clients that submit concurrently. They share one process that runs
// at the lowest priority, since they stand for other machines.

// crowdSpec configures a crowd, as JSON on its standard input.
type crowdSpec struct {
	Address, Key   string
	Pid            int    // of the server
	Series         string // makes names unique
	Type, Settings string
	Clients        int
	Rounds         int
	Idle           time.Duration // before each round
	For            time.Duration // duration of a round; a client submits at least once
}

// crowdReport is the output of a crowd.
type crowdReport struct {
	Rounds []crowdRound
	Took   []time.Duration // sorted
}

// crowdRound is a period in which the crowd submitted.
type crowdRound struct {
	Begun, Ended int64 // Unix times in nanoseconds
	Own, Server  time.Duration
}

// runCrowdProcess is the main function of a crowd process.
func runCrowdProcess(ctx context.Context, in io.Reader, out io.Writer) error {
	var spec crowdSpec
	if err := json.NewDecoder(in).Decode(&spec); err != nil {
		return err
	}
	s := &server{address: spec.Address, key: spec.Key}
	conns := make([]*conn, spec.Clients)
	for i := range conns {
		var err error
		if conns[i], err = dial(spec.Address); err != nil {
			return err
		}
		defer func() { conns[i].close() }()
	}
	var report crowdReport
	for round := range spec.Rounds {
		if err := pause(ctx, spec.Idle); err != nil {
			return err
		}
		own := processCPU()
		before, err := clockOf(spec.Pid)
		if err != nil {
			return err
		}
		done, err := closedLoop(ctx, spec.Clients, spec.For, func(n int) (func() error, func(), error) {
			number := 0
			return func() error {
				number++
				return s.submitWithRetries(&conns[n], fmt.Sprintf("%s-%d-%d-%d", spec.Series, round, n, number), spec.Type, spec.Settings)
			}, func() {}, nil
		})
		if err != nil {
			return err
		}
		ended := time.Now().UnixNano()
		after, err := clockOf(spec.Pid)
		if err != nil {
			return err
		}
		report.Rounds = append(report.Rounds, crowdRound{ended - int64(done.elapsed), ended, processCPU() - own, after - before})
		report.Took = append(report.Took, done.took...)
	}
	slices.Sort(report.Took)
	return json.NewEncoder(out).Encode(report)
}

// busyNow appears in the error when too many submissions are waiting to be validated.
const busyNow = "status 503"

// submitWithRetries submits a job, and retries while the server is busy, as happens on a
// heavily loaded machine. The waiting time counts.
func (s *server) submitWithRetries(c **conn, name, typ, settings string) error {
	return withRetries(c, s.address, func() error { return s.submitNew(*c, name, typ, settings) }, busyNow)
}

// submitNew submits a job, and fails if the job already exists.
func (s *server) submitNew(c *conn, name, typ, settings string) error {
	answer, err := c.do(s.submission(name, typ, settings))
	if err == nil && !bytes.Contains(answer, []byte(`"created":true`)) {
		err = fmt.Errorf("the job is not new: %s", answer)
	}
	return err
}
