package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"molrun/app"
)

// Options say how large a run is.
type Options struct {
	Program string        // the molrun binary to measure
	Dir     string        // what is written goes below it, and is removed; "": the system's place
	Data    string        // a directory that Seed has filled, instead of seeding one
	Jobs    int           // in the large database
	Rounds  int           // of all measurements; each figure is the median
	For     time.Duration // of each measurement
	Size    app.Bytes     // of the files that are moved
	Largest app.Bytes       // of the largest file in a result; it takes no room on the disk

	Table io.Writer // the goals, at the end
	Lines io.Writer // each run as a line of JSON; nil: nobody reads them
	Log   io.Writer // what is going on
}

// figures are what was measured, by name.
type figures map[string]float64

// testbed is a run: its servers, and what they were given once.
type testbed struct {
	Options
	dir     string
	payload string // a file of Size bytes
	peer    *nginx // nil: there is none
	bare    *bare

	large, small *server // of many jobs and of a thousand
	queue        *server // where submitted jobs wait
	jobs         *server // where they run, and files go to and fro
	cursors      map[*server][]string
	upload       string // path of a file of Size bytes on the server jobs
	submitted    int
}

// measurement is one part of a round.
type measurement struct {
	name string
	run  func(*testbed, context.Context, figures) error
}

// measurements in their order: what is compared stands side by side.
var measurements = []measurement{
	{"sync", (*testbed).measureSync},
	{"submit", (*testbed).measureSubmit},
	{"submit-one", (*testbed).measureSubmitOne},
	{"list", (*testbed).measureList},
	{"filters", (*testbed).measureFilters},
	{"list-while-submitting", (*testbed).measureListUnderLoad},
	{"download", (*testbed).measureDownload},
	{"ranges", (*testbed).measureRanges},
	{"upload", (*testbed).measureUpload},
	{"archive", (*testbed).measureArchive},
	{"memory", (*testbed).measureMemory},
	{"jobs", (*testbed).measureJobs},
	{"start", (*testbed).measureStart},
	{"cold-start", (*testbed).measureColdStart},
	{"idle", (*testbed).measureIdle},
}

// Table measures everything in rounds and prints the goals. Measurements are
// named to run only these.
func Table(ctx context.Context, o Options, only ...string) (err error) {
	b := &testbed{Options: o, cursors: map[*server][]string{}}
	defer func() { err = errors.Join(err, b.close()) }()
	once := figures{}
	if err := b.open(ctx, once); err != nil {
		return err
	}
	b.line(0, "seed", once)
	rounds := []figures{}
	for round := range o.Rounds {
		all := figures{}
		for name, value := range once {
			all[name] = value
		}
		for _, m := range measurements {
			if !chosen(m.name, only) {
				continue
			}
			b.logf("round %d of %d: %s", round+1, o.Rounds, m.name)
			f := figures{}
			if err := m.run(b, ctx, f); err != nil {
				return fmt.Errorf("measure %s: %w", m.name, err)
			}
			b.line(round+1, m.name, f)
			for name, value := range f {
				all[name] = value
			}
		}
		rounds = append(rounds, all)
	}
	printTable(o.Table, goals(rounds), b.missing())
	return nil
}

func chosen(name string, only []string) bool {
	for _, o := range only {
		if o == name {
			return true
		}
	}
	return len(only) == 0
}

func (b *testbed) logf(format string, args ...any) { fmt.Fprintf(b.Log, format+"\n", args...) }

// line prints a run.
func (b *testbed) line(round int, what string, f figures) {
	if b.Lines == nil {
		return
	}
	text, err := json.Marshal(map[string]any{"round": round, "what": what, "jobs": b.Jobs, "figures": f})
	if err == nil {
		fmt.Fprintf(b.Lines, "%s\n", text)
	}
}

// open makes data and starts all servers.
func (b *testbed) open(ctx context.Context, f figures) (err error) {
	if b.dir, err = os.MkdirTemp(b.Dir, "molrun-bench-"); err != nil {
		return err
	}
	if err := b.openData(ctx, f); err != nil {
		return err
	}
	for _, s := range []struct {
		place **server
		name  string
		cpus  int
	}{{&b.large, "large", 1}, {&b.small, "small", 1}, {&b.queue, "queue", 1}, {&b.jobs, "jobs", startersAtOnce}} {
		if *s.place, err = newServer(b.Program, filepath.Join(b.dir, s.name), s.cpus); err != nil {
			return err
		}
		if _, err := (*s.place).start(ctx); err != nil {
			return fmt.Errorf("start the server %q: %w", s.name, err)
		}
	}
	for _, s := range []*server{b.large, b.queue} {
		if err := s.ask(s.post("/submit-job", []byte(`{"jobName":"hold","type":"hold","settings":{"seconds":3600}}`)), nil); err != nil {
			return err
		}
	}
	for _, s := range []*server{b.large, b.small} {
		if b.cursors[s], err = collectCursors(s, 1000); err != nil {
			return err
		}
	}
	return b.openFiles(ctx)
}

// openData seeds the databases.
func (b *testbed) openData(ctx context.Context, f figures) error {
	const few = 1000
	if err := Seed(ctx, filepath.Join(b.dir, "small", "data"), min(few, b.Jobs), nil); err != nil {
		return err
	}
	data := filepath.Join(b.dir, "large", "data")
	if b.Data != "" {
		if err := seedOrCopy(ctx, b.Data, data, b.Jobs); err != nil {
			return err
		}
		return databaseSize(data, b.Jobs, f)
	}
	began := time.Now()
	err := Seed(ctx, data, b.Jobs, func(done int) {
		if done%100_000 == 0 {
			b.logf("%d jobs seeded in %s", done, time.Since(began).Round(time.Second))
		}
	})
	if err != nil {
		return err
	}
	f["seed.rate"] = float64(b.Jobs) / time.Since(began).Seconds()
	return databaseSize(data, b.Jobs, f)
}

func databaseSize(data string, jobs int, f figures) error {
	info, err := os.Stat(filepath.Join(data, "jobs.db"))
	if err == nil {
		f["database.bytes"] = float64(info.Size()) / float64(jobs)
	}
	return err
}

// missing says in sentences what this machine lacks.
func (b *testbed) missing() (sentences []string) {
	if b.peer == nil {
		sentences = append(sentences, "skipped: the comparisons with nginx, which is not installed (Debian: nginx-light)")
	}
	if _, err := exec.LookPath("openssl"); err != nil {
		sentences = append(sentences, "skipped: the comparison with OpenSSL, which is not installed")
	}
	return sentences
}

// close ends what runs and removes what was written.
func (b *testbed) close() error {
	var errs []error
	for _, s := range []*server{b.large, b.queue} {
		if s != nil && s.process != nil && s.key != "" {
			errs = append(errs, b.release(s))
		}
	}
	for _, s := range []*server{b.large, b.small, b.queue, b.jobs} {
		errs = append(errs, s.stop())
	}
	errs = append(errs, b.peer.stop(), b.bare.stop())
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	if b.payload != "" {
		errs = append(errs, os.RemoveAll(filepath.Dir(b.payload)))
	}
	return errors.Join(errs...)
}

// release ends the job that keeps others waiting, and those others before it
// could begin.
func (b *testbed) release(s *server) error {
	c, err := dial(s.address)
	if err != nil {
		return err
	}
	defer c.close()
	if _, err := c.do(s.post("/jobs/hold/cancel", nil)); err != nil {
		return err
	}
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		body, err := c.do(s.get("/jobs/hold?wait=1s"))
		if err != nil {
			return err
		}
		var j struct{ Status app.Status }
		if err := json.Unmarshal(body, &j); err != nil || j.Status.Finished() {
			return err
		}
	}
	return errors.New("the job that holds the queue does not end")
}
