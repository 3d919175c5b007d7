package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// crowd is how many clients submit at once.
const crowd = 64

// measureSync tells which regime the disk is in.
func (b *testbed) measureSync(ctx context.Context, f figures) error {
	s, err := limitSync(ctx, b.dir, b.For/4)
	f["sync.p50"], f["sync.p99"] = s.quantile(.5), s.quantile(.99)
	return err
}

// measureSubmit compares durable submissions of many clients with bare commits.
func (b *testbed) measureSubmit(ctx context.Context, f figures) error {
	used, err := ownCPU()
	if err != nil {
		return err
	}
	limit, err := limitCommits(ctx, b.dir, crowd, b.For)
	if err != nil {
		return err
	}
	now, err := ownCPU()
	if err != nil {
		return err
	}
	f["commit.cpu"] = microseconds(now-used) / float64(len(limit.took)) // tells how fast the CPU is just now
	before, err := os.Stat(filepath.Join(b.queue.data(), "jobs.db"))
	if err != nil {
		return err
	}
	var s sample
	cpu, err := b.queue.cpu(func() (err error) {
		s, err = closed(ctx, crowd, b.For, b.submitting(b.queue))
		return err
	})
	if err != nil {
		return err
	}
	after, err := os.Stat(filepath.Join(b.queue.data(), "jobs.db"))
	if err != nil {
		return err
	}
	f["commit.rate"], f["commit.p50"], f["commit.p99"] = limit.rate(), limit.quantile(.5), limit.quantile(.99)
	f["submit.rate"], f["submit.p50"], f["submit.p99"] = s.rate(), s.quantile(.5), s.quantile(.99)
	f["submit.cpu"] = microseconds(cpu) / float64(len(s.took))
	f["submit.bytes"] = float64(after.Size()-before.Size()) / float64(len(s.took))
	return nil
}

// measureSubmitOne compares the submissions of a single client with single
// commits.
func (b *testbed) measureSubmitOne(ctx context.Context, f figures) error {
	limit, err := limitCommits(ctx, b.dir, 1, b.For/2)
	if err != nil {
		return err
	}
	s, err := closed(ctx, 1, b.For/2, b.submitting(b.queue))
	f["commit1.p50"], f["submit1.p50"], f["submit1.p99"] = limit.quantile(.5), s.quantile(.5), s.quantile(.99)
	return err
}

// submitting gives clients that submit jobs of new names, each with settings of
// some hundred bytes.
func (b *testbed) submitting(s *server) worker {
	b.submitted++
	series := b.submitted
	return func(n int) (func() error, func(), error) {
		c, err := dial(s.address)
		if err != nil {
			return nil, nil, err
		}
		number := 0
		return func() error {
			number++
			body := submission(fmt.Sprintf("s%d-%d-%d", series, n, number), "nothing", `{"note":"`+note+`"}`)
			answer, err := c.do(s.post("/submit-job", body))
			if err == nil && !bytes.Contains(answer, []byte(`"created":true`)) {
				err = fmt.Errorf("the job is not new: %s", answer)
			}
			return err
		}, c.close, nil
	}
}

// note makes the settings as long as those of seeded jobs.
var note = strings.Repeat("molecule ", seedSettings/9)

func submission(name, typ, settings string) []byte {
	return fmt.Appendf(nil, `{"jobName":%q,"type":%q,"settings":%s}`, name, typ, settings)
}
