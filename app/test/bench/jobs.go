package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

var errEnough = errors.New("enough jobs were submitted")

// measureJobs compares jobs whose program does nothing, timed from the first submission
// to the end of the last job, with bare process starts.
func measureJobs(ctx context.Context, b *testbed, f figures) error {
	limit, err := limitStarts(ctx, b.dir, b.Duration/2)
	if err != nil {
		return err
	}
	f["starts.rate"] = limit.rate()
	total := max(8, int64(limit.rate()*b.Duration.Seconds()/4))
	series := time.Now().UnixNano()
	var submitted atomic.Int64
	submitting := connected(b.jobs.address, func(c *conn, _ int) func() error {
		return func() error {
			n := submitted.Add(1)
			if n > total {
				return errEnough
			}
			_, err := c.do(b.jobs.submission(fmt.Sprintf("n%d-%d", series, n), "nothing", `{"note":""}`))
			return err
		}
	})
	began := time.Now()
	cpu, err := cpuDuring(func() error {
		if _, err := closedLoop(ctx, 8, b.Duration*10, submitting); err != nil && !errors.Is(err, errEnough) {
			return err
		}
		return awaitAll(ctx, b.jobs)
	}, b.jobs.pid())
	f["jobs.rate"] = float64(total) / time.Since(began).Seconds()
	f["jobs.cpu"] = milliseconds(cpu) / float64(total)
	return err
}

// awaitAll waits until no job is queued or running.
func awaitAll(ctx context.Context, s *server) error {
	c, err := dial(s.address)
	if err != nil {
		return err
	}
	defer c.close()
	for _, status := range []string{"QUEUED", "RUNNING", "QUEUED"} { // QUEUED again: a lost attempt returns to the queue
		for {
			body, err := c.do(s.get("/jobs?limit=1&organization=true&status=" + status))
			if err != nil {
				return err
			}
			var page struct{ Jobs []json.RawMessage }
			if err := json.Unmarshal(body, &page); err != nil {
				return err
			}
			if len(page.Jobs) == 0 {
				break
			}
			if err := pause(ctx, 5*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// measureStart measures, on an idle service, the time from the submission of a job until
// its process runs. The process prints the time at which it runs.
func measureStart(ctx context.Context, b *testbed, f figures) error {
	series := time.Now().UnixNano()
	var all []time.Duration
	for n := range max(3, int(b.Duration/(100*time.Millisecond))) {
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
		name, began := fmt.Sprintf("m%d-%d", series, n), time.Now()
		if err := b.jobs.complete(name, "moment", `{}`); err != nil {
			return err
		}
		moment, err := printedMoment(b.jobs, name)
		if err != nil {
			return err
		}
		all = append(all, moment.Sub(began))
	}
	slices.Sort(all)
	f["start.p50"] = milliseconds(all[len(all)/2])
	sync, err := limitSync(ctx, b.dir, b.Duration/4)
	f["start.sync"] = sync.quantile(.5)
	return err
}

// printedMoment returns the time printed in the log of a job.
func printedMoment(s *server, job string) (time.Time, error) {
	c, err := dial(s.address)
	if err != nil {
		return time.Time{}, err
	}
	defer c.close()
	log, err := c.do(s.get("/jobs/" + job + "/logs"))
	if err != nil {
		return time.Time{}, err
	}
	nanoseconds, err := strconv.ParseInt(strings.TrimSpace(string(log)), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("the log of job %s: %w", job, err)
	}
	return time.Unix(0, nanoseconds), nil
}
