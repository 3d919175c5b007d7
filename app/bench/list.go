package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// measureList compares pages of 50 among many jobs with those among a thousand.
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

// measureFilters compares each combination of filters with the first page, and
// keeps the slowest of each kind.
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

// measureListUnderLoad compares first pages while many clients submit with
// those of an idle service, and with responses that cost nothing but their turn
// on the CPUs, which the submitting clients share.
func measureListUnderLoad(ctx context.Context, b *testbed, f figures) error {
	s := b.large
	listing := s.calling(s.get(firstPage))
	quiet, err := closedLoop(ctx, 1, b.Duration/2, listing)
	if err != nil {
		return err
	}
	var load sample
	var loadErr error
	var submitting sync.WaitGroup
	submitting.Go(func() { load, loadErr = closedLoop(ctx, crowd, 2*b.Duration, s.submitting()) })
	time.Sleep(b.Duration / 10) // until all clients are connected
	busy, err := closedLoop(ctx, 1, b.Duration*8/10, listing)
	empty, emptyErr := closedLoop(ctx, 1, b.Duration*8/10, s.calling(s.get("/version")))
	submitting.Wait()
	if err := errors.Join(err, emptyErr, loadErr); err != nil {
		return err
	}
	f["list.quiet.p99"], f["list.busy.p99"], f["empty.busy.p99"] = quiet.quantile(.99), busy.quantile(.99), empty.quantile(.99)
	f["list.busy.p50"], f["submit.large.rate"] = busy.quantile(.5), load.rate()
	return nil
}
