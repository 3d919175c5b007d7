package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"time"
)

const firstPage = "/jobs?limit=50&organization=true"

// collectCursors walks a whole listing and keeps the cursors of most pages at
// the same distance; where there is only one page, none.
func collectCursors(s *server, most int) ([]string, error) {
	c, err := dial(s.address)
	if err != nil {
		return nil, err
	}
	defer c.close()
	var all []string
	for path := firstPage; ; {
		body, err := c.do(s.get(path))
		if err != nil {
			return nil, err
		}
		cursor, err := cursorOf(body)
		if err != nil || cursor == "" {
			break
		}
		all = append(all, cursor)
		path = firstPage + "&startKey=" + url.QueryEscape(cursor)
	}
	apart := max(1, len(all)/most)
	kept := all[:0]
	for i := 0; i < len(all); i += apart {
		kept = append(kept, all[i])
	}
	return kept, nil
}

// cursorOf reads the end of a page, where the cursor is.
func cursorOf(body []byte) (string, error) {
	var page struct{ StartKey string }
	tail := body[max(0, len(body)-200):]
	const member = `],"startKey":`
	for i := len(tail) - len(member); i >= 0; i-- {
		if string(tail[i:i+len(member)]) == member {
			err := json.Unmarshal(append([]byte(`{"startKey":`), tail[i+len(member):]...), &page)
			return page.StartKey, err
		}
	}
	return "", nil
}

// asking gives clients that send one of these requests after the other.
func (s *server) asking(requests [][]byte) worker {
	return func(n int) (func() error, func(), error) {
		c, err := dial(s.address)
		if err != nil {
			return nil, nil, err
		}
		next := n
		return func() error {
			next++
			_, err := c.do(requests[next%len(requests)])
			return err
		}, c.close, nil
	}
}

// pages gives the requests for random pages, the first page where there is no
// other.
func (b *testbed) pages(s *server) [][]byte {
	requests := [][]byte{}
	for _, cursor := range b.cursors[s] {
		requests = append(requests, s.get(firstPage+"&startKey="+url.QueryEscape(cursor)))
	}
	if len(requests) == 0 {
		requests = append(requests, s.get(firstPage))
	}
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(requests), func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
	return requests
}

// measureList compares pages of 50 among many jobs with those among a thousand.
func (b *testbed) measureList(ctx context.Context, f figures) error {
	d := b.For / 4
	for _, s := range []struct {
		*server
		name string
	}{{b.small, "small"}, {b.large, "large"}} {
		var first sample
		cpu, err := s.cpu(func() (err error) {
			first, err = closed(ctx, 1, d, s.asking([][]byte{s.get(firstPage)}))
			return err
		})
		if err != nil {
			return err
		}
		random, err := closed(ctx, 1, d, s.asking(b.pages(s.server)))
		if err != nil {
			return err
		}
		f["list."+s.name+".first"], f["list."+s.name+".random"] = first.quantile(.5), random.quantile(.5)
		f["list."+s.name+".p99"] = first.quantile(.99)
		f["list."+s.name+".cpu"] = microseconds(cpu) / float64(len(first.took))
	}
	return nil
}

// filter is a combination of filters.
type filter struct{ user, algorithm, status string }

func (f filter) path() string {
	path := "/jobs?limit=50"
	if f.user == "" {
		path += "&organization=true"
	}
	for name, value := range map[string]string{"jobEmail": f.user, "algorithm": f.algorithm, "status": f.status} {
		if value != "" {
			path += "&" + name + "=" + url.QueryEscape(value)
		}
	}
	return path
}

// filters by how much they find: every combination with many hits, with few
// far apart, and with none.
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
			{user: noUser},
			{algorithm: noAlgorithm},
			{user: user, algorithm: noAlgorithm},
			{user: user, status: "RUNNING"},
			{algorithm: algorithm, status: "RUNNING"},
			{user: noUser, algorithm: algorithm, status: "COMPLETED"},
		},
	}
}

// measureFilters measures each combination next to the first page, and keeps
// the dearest of each kind.
func (b *testbed) measureFilters(ctx context.Context, f figures) error {
	for kind, all := range filters() {
		for _, one := range all {
			first, found, err := b.large.alternately(ctx, b.For/10, b.large.get(firstPage), b.large.get(one.path()))
			if err != nil {
				return fmt.Errorf("%s: %w", one.path(), err)
			}
			f["filter."+kind] = max(f["filter."+kind], found.quantile(.5)/first.quantile(.5))
		}
	}
	return nil
}

// alternately sends one request after the other in turn, so that what else goes
// on concerns both alike.
func (s *server) alternately(ctx context.Context, d time.Duration, one, other []byte) (a, b sample, err error) {
	c, err := dial(s.address)
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
// those of a quiet service, and with answers that cost nothing but their turn
// on the CPUs, which the submitting clients share.
func (b *testbed) measureListUnderLoad(ctx context.Context, f figures) error {
	s := b.large
	listing := s.asking([][]byte{s.get(firstPage)})
	quiet, err := closed(ctx, 1, b.For/2, listing)
	if err != nil {
		return err
	}
	var load sample
	var loadErr error
	var submitting sync.WaitGroup
	submitting.Go(func() { load, loadErr = closed(ctx, crowd, 2*b.For, b.submitting(s)) })
	time.Sleep(b.For / 10) // until all are at it
	busy, err := closed(ctx, 1, b.For*8/10, listing)
	empty, emptyErr := closed(ctx, 1, b.For*8/10, s.asking([][]byte{s.get("/version")}))
	submitting.Wait()
	if err := errors.Join(err, emptyErr, loadErr); err != nil {
		return err
	}
	f["list.quiet.p99"], f["list.busy.p99"], f["empty.busy.p99"] = quiet.quantile(.99), busy.quantile(.99), empty.quantile(.99)
	f["list.busy.p50"], f["submit.large.rate"] = busy.quantile(.5), load.rate()
	return nil
}
