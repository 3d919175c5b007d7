package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"molrun/app"
)

// finished submits a job, unless it is there, and waits for its end.
func (b *testbed) finished(name, typ, settings string) error {
	s := b.jobs
	c, err := dial(s.address)
	if err != nil {
		return err
	}
	defer c.close()
	if _, err := c.do(s.post("/submit-job", submission(name, typ, settings))); err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		body, err := c.do(s.get("/jobs/" + name + "?wait=10s"))
		if err != nil {
			return err
		}
		var j struct {
			Status  app.Status
			Failure json.RawMessage
		}
		if err := json.Unmarshal(body, &j); err != nil {
			return err
		}
		switch j.Status {
		case app.Completed:
			return nil
		case app.Failed:
			return fmt.Errorf("job %s failed: %s", name, j.Failure)
		}
	}
	return fmt.Errorf("job %s does not end", name)
}

// measureJobs compares jobs that do nothing, from the first submission to the
// end of the last, with bare starts of processes.
func (b *testbed) measureJobs(ctx context.Context, f figures) error {
	limit, err := limitStarts(ctx, b.dir, b.For/2)
	if err != nil {
		return err
	}
	f["starts.rate"] = limit.rate()
	most := max(8, int64(limit.rate()*b.For.Seconds()/4))
	series := time.Now().UnixNano()
	var made atomic.Int64
	began := time.Now()
	cpu, err := b.jobs.cpu(func() error {
		_, err := closed(ctx, 8, b.For*10, func(int) (func() error, func(), error) {
			c, err := dial(b.jobs.address)
			if err != nil {
				return nil, nil, err
			}
			return func() error {
				n := made.Add(1)
				if n > most {
					return errEnough
				}
				_, err := c.do(b.jobs.post("/submit-job", submission(fmt.Sprintf("n%d-%d", series, n), "nothing", `{"note":""}`)))
				return err
			}, c.close, nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
		return b.quiet(ctx)
	})
	f["jobs.rate"] = float64(most) / time.Since(began).Seconds()
	f["jobs.cpu"] = milliseconds(cpu) / float64(most)
	return err
}

var errEnough = errors.New("enough jobs were submitted")

// quiet waits until no job waits or runs.
func (b *testbed) quiet(ctx context.Context) error {
	c, err := dial(b.jobs.address)
	if err != nil {
		return err
	}
	defer c.close()
	for _, status := range []string{"QUEUED", "RUNNING", "QUEUED"} {
		for {
			body, err := c.do(b.jobs.get("/jobs?limit=1&organization=true&status=" + status))
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

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// measureStart measures, while nothing else happens, how long it takes from
// the submission of a job until its process runs, by that process's own word.
func (b *testbed) measureStart(ctx context.Context, f figures) error {
	series := time.Now().UnixNano()
	var all []time.Duration
	for n := range max(3, int(b.For/(100*time.Millisecond))) {
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
		name, began := fmt.Sprintf("m%d-%d", series, n), time.Now()
		if err := b.finished(name, "moment", `{}`); err != nil {
			return err
		}
		c, err := dial(b.jobs.address)
		if err != nil {
			return err
		}
		log, err := c.do(b.jobs.get("/jobs/" + name + "/logs"))
		c.close()
		if err != nil {
			return err
		}
		moment, err := strconv.ParseInt(trimmed(log), 10, 64)
		if err != nil {
			return fmt.Errorf("the log of %s: %w", name, err)
		}
		all = append(all, time.Unix(0, moment).Sub(began))
	}
	slices.Sort(all)
	f["start.p50"] = milliseconds(all[len(all)/2])
	sync, err := limitSync(ctx, b.dir, b.For/4)
	f["start.sync"] = sync.quantile(.5)
	return err
}

// measureColdStart restarts the server with many jobs.
func (b *testbed) measureColdStart(ctx context.Context, f figures) error {
	if err := b.large.stop(); err != nil {
		return err
	}
	took, err := b.large.start(ctx)
	if err != nil {
		return err
	}
	f["cold.first"] = milliseconds(took)
	if err := b.large.ask(b.large.get(firstPage), nil); err != nil {
		return err
	}
	f["cold.memory"], err = anonymous(b.large.pid())
	return err
}

// measureIdle watches a server that has nothing to do.
func (b *testbed) measureIdle(ctx context.Context, f figures) error {
	s := b.small
	sleeps, err := wakeUps(s.pid())
	if err != nil {
		return err
	}
	cpu, err := s.cpu(func() error { return pause(ctx, b.For) })
	if err != nil {
		return err
	}
	later, err := wakeUps(s.pid())
	if err != nil {
		return err
	}
	f["idle.wakeups"] = float64(later-sleeps) / b.For.Seconds()
	f["idle.cpu"] = milliseconds(cpu) / b.For.Seconds()
	f["idle.memory"], err = anonymous(s.pid())
	return err
}
