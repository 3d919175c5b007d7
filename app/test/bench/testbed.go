package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// testbed holds what all measurements of a run share: servers, peers and a file to
// transfer.
type testbed struct {
	options
	dir string // contains all files except the payload

	large, small *server // with many jobs and with a thousand
	queue        *server // keeps submitted jobs queued
	jobs         *server // runs jobs and stores files

	payload  *payload
	download string // path of the payload on the server jobs
	bare     *bareServer
	peer     *nginx // nil if nginx is not installed
}

// open seeds the databases and starts all servers. It returns the measurements taken
// while seeding.
func (b *testbed) open(ctx context.Context) (f figures, err error) {
	if b.dir, err = os.MkdirTemp(b.Dir, "molrun-bench-"); err != nil {
		return nil, err
	}
	if f, err = b.seedServers(ctx); err != nil {
		return nil, err
	}
	for _, s := range []struct {
		server **server
		name   string
		cpus   int
	}{{&b.large, "large", 1}, {&b.small, "small", 1}, {&b.queue, "queue", 1}, {&b.jobs, "jobs", concurrentStarts}} {
		if *s.server, err = newServer(b.Molrun, filepath.Join(b.dir, s.name), s.cpus); err != nil {
			return nil, err
		}
		if _, err := (*s.server).start(ctx); err != nil {
			return nil, fmt.Errorf("start the server %q: %w", s.name, err)
		}
	}
	err = errors.Join(b.large.block(), b.queue.block(), b.large.collectCursors(1000), b.small.collectCursors(1000))
	if err != nil {
		return nil, err
	}
	return f, b.openFiles(ctx)
}

// seedServers fills the databases of the servers large and small.
func (b *testbed) seedServers(ctx context.Context) (figures, error) {
	const few = 1000
	if err := seed(ctx, filepath.Join(b.dir, "small", "data"), min(few, b.Jobs), nil); err != nil {
		return nil, err
	}
	f, large := figures{}, &server{dir: filepath.Join(b.dir, "large")}
	began := time.Now()
	err := seedOrCopy(ctx, b.Seeded, large.data(), b.Jobs, func(done int) {
		if done%100_000 == 0 {
			b.logf("%d jobs seeded in %s", done, time.Since(began).Round(time.Second))
		}
	})
	if err != nil {
		return nil, err
	}
	if b.Seeded == "" {
		f["seed.rate"] = float64(b.Jobs) / time.Since(began).Seconds()
	}
	f["database.bytes"], err = bytesPerJob(large, b.Jobs)
	return f, err
}

// seedOrCopy fills a data directory with a copy of seeded, or seeds it if seeded is
// empty.
func seedOrCopy(ctx context.Context, seeded, data string, jobs int, progress func(done int)) error {
	if seeded == "" {
		return seed(ctx, data, jobs, progress)
	}
	if err := os.CopyFS(data, os.DirFS(seeded)); err != nil {
		return fmt.Errorf("copy the seeded data: %w", err)
	}
	return nil
}

func bytesPerJob(s *server, jobs int) (float64, error) {
	info, err := os.Stat(s.database())
	if err != nil {
		return 0, err
	}
	return float64(info.Size()) / float64(jobs), nil
}

// openFiles creates the payload, uploads it and starts the servers to compare with.
func (b *testbed) openFiles(ctx context.Context) (err error) {
	if b.payload, err = makePayload(b.dir, int64(b.Size)); err != nil {
		return err
	}
	if b.peer, err = startNginx(ctx, filepath.Join(b.dir, "nginx")); err != nil {
		return err
	}
	if b.peer != nil {
		if err := b.payload.copyTo(filepath.Join(b.peer.files, "payload")); err != nil {
			return err
		}
	}
	if b.bare, err = startBare(ctx, filepath.Dir(b.payload.path)); err != nil {
		return err
	}
	u, err := b.payload.upload(b.jobs, "payload.bin")
	if err != nil {
		return fmt.Errorf("upload: %w", err)
	}
	b.download = u.download
	return b.jobs.call(b.jobs.post("/upload/"+u.id+"/complete", fmt.Appendf(nil, `{"size":%d}`, b.payload.size)), nil)
}

// missing returns a sentence for each comparison that is not possible on this machine.
func (b *testbed) missing() (sentences []string) {
	if b.peer == nil {
		sentences = append(sentences, "skipped: the comparisons with nginx, which is not installed (Debian: nginx-light)")
	}
	if _, err := exec.LookPath("openssl"); err != nil {
		sentences = append(sentences, "skipped: the comparison with OpenSSL, which is not installed")
	}
	return sentences
}

// close stops all processes and removes all files.
func (b *testbed) close() error {
	var errs []error
	for _, s := range []*server{b.large, b.small, b.queue, b.jobs} {
		errs = append(errs, s.close())
	}
	errs = append(errs, b.peer.stop(), b.bare.stop(), b.payload.remove())
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}
