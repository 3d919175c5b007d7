package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// cost is something whose price may depend on how many jobs there are.
type cost struct {
	name string // with its unit
	find func(*growing, context.Context) (float64, error)
}

// costs in the order in which they are measured: what changes the data most
// comes last.
var costs = []cost{
	{"start to first answer, ms", (*growing).coldStart},
	{"memory after the start, MiB", (*growing).memory},
	{"database per job, KiB", (*growing).perJob},
	{"first page, ms", (*growing).firstPage},
	{"page 1,000, ms", (*growing).farPage},
	{"user and status, ms", (*growing).filtered},
	{"nothing found, ms", (*growing).nothing},
	{"submission, ms", (*growing).submission},
	{"batch of 10,000, ms", (*growing).batch},
	{"delete 100 old jobs, ms", (*growing).prune},
	{"backup, ms", (*growing).backup},
}

// growing is a server with so many jobs.
type growing struct {
	*testbed
	*server
	jobs  int
	holds bool // a job keeps the others waiting
}

// Growth measures each cost with each number of jobs, prints a line of JSON for
// each number, and draws the costs where plot names a file.
func Growth(ctx context.Context, o Options, numbers []int, plot string) error {
	series := make([][]point, len(costs))
	seeded := o.Data
	for k, n := range numbers {
		f := figures{}
		if o.Data = ""; k == len(numbers)-1 {
			o.Data = seeded
		}
		if err := growTo(ctx, o, n, f); err != nil {
			return fmt.Errorf("with %d jobs: %w", n, err)
		}
		(&testbed{Options: Options{Lines: o.Lines, Jobs: n}}).line(1, "growth", f)
		for i, c := range costs {
			series[i] = append(series[i], point{float64(n), f[c.name]})
		}
	}
	if plot == "" {
		return nil
	}
	var names []string
	for _, c := range costs {
		names = append(names, c.name)
	}
	return os.WriteFile(plot, drawing(names, series), 0o644)
}

// growTo seeds a database of its own and measures.
func growTo(ctx context.Context, o Options, n int, f figures) (err error) {
	dir, err := os.MkdirTemp(o.Dir, "molrun-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &testbed{Options: o, dir: dir}
	b.logf("%d jobs", n)
	s, err := newServer(o.Program, dir, 1)
	if err != nil {
		return err
	}
	if err := seedOrCopy(ctx, o.Data, s.data(), n); err != nil {
		return err
	}
	if _, err := s.start(ctx); err != nil { // makes the key
		return err
	}
	holds := false
	defer func() {
		if holds {
			err = errors.Join(err, b.release(s))
		}
		err = errors.Join(err, s.stop())
	}()
	g := &growing{testbed: b, server: s, jobs: n}
	for _, c := range costs {
		f[c.name], err = c.find(g, ctx)
		if holds = g.holds; err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// seedOrCopy fills a data directory, from another where one is named.
func seedOrCopy(ctx context.Context, from, data string, jobs int) error {
	if from == "" {
		return Seed(ctx, data, jobs, nil)
	}
	if err := os.CopyFS(data, os.DirFS(from)); err != nil {
		return fmt.Errorf("copy the seeded data: %w", err)
	}
	return nil
}

func (g *growing) coldStart(ctx context.Context) (float64, error) {
	if err := g.stop(); err != nil {
		return 0, err
	}
	took, err := g.start(ctx)
	return milliseconds(took), err
}

func (g *growing) memory(context.Context) (float64, error) { return anonymous(g.pid()) }

func (g *growing) perJob(context.Context) (float64, error) {
	f := figures{}
	err := databaseSize(g.data(), g.jobs, f)
	return f["database.bytes"] / 1024, err
}

// page gives the median time of a request.
func (g *growing) page(ctx context.Context, request []byte) (float64, error) {
	s, err := closed(ctx, 1, g.For/4, g.asking([][]byte{request}))
	return s.quantile(.5), err
}

func (g *growing) firstPage(ctx context.Context) (float64, error) {
	return g.page(ctx, g.get(firstPage))
}

// farPage asks for page 1,000, or for the last one where there are fewer.
func (g *growing) farPage(ctx context.Context) (float64, error) {
	c, err := dial(g.address)
	if err != nil {
		return 0, err
	}
	defer c.close()
	path := firstPage
	for range 999 {
		body, err := c.do(g.get(path))
		if err != nil {
			return 0, err
		}
		cursor, err := cursorOf(body)
		if err != nil {
			return 0, err
		}
		if cursor == "" {
			break
		}
		path = firstPage + "&startKey=" + url.QueryEscape(cursor)
	}
	return g.page(ctx, g.get(path))
}

func (g *growing) filtered(ctx context.Context) (float64, error) {
	return g.page(ctx, g.get(filter{user: seedUser(1), status: "FAILED"}.path()))
}

func (g *growing) nothing(ctx context.Context) (float64, error) {
	return g.page(ctx, g.get(filter{user: noUser, algorithm: seedAlgorithm(0), status: "COMPLETED"}.path()))
}

// submission holds the queue first, so that nothing runs.
func (g *growing) submission(ctx context.Context) (float64, error) {
	if err := g.ask(g.post("/submit-job", submission("hold", "hold", `{"seconds":3600}`)), nil); err != nil {
		return 0, err
	}
	g.holds = true
	s, err := closed(ctx, 1, g.For/2, g.submitting(g.server))
	return s.quantile(.5), err
}

func (g *growing) batch(context.Context) (float64, error) {
	const rows = 10_000
	row := `{"note":"` + note + `"}`
	body := `{"batchName":"rows","type":"nothing","settings":[` + strings.Repeat(row+",", rows-1) + row + `]}`
	began := time.Now()
	err := g.ask(g.post("/submit-batch", []byte(body)), nil)
	return milliseconds(time.Since(began)), err
}

// prune deletes the oldest jobs, as retention does.
func (g *growing) prune(ctx context.Context) (float64, error) {
	const most = 100
	gone := min(most, g.jobs/2)
	age := time.Duration(float64(seedYears*365*24*time.Hour) * (1 - float64(gone)/float64(g.jobs)))
	began := time.Now()
	out, err := g.run(ctx, "prune", "--older-than", age.Truncate(time.Second).String(), "--yes", "--json")
	took := time.Since(began)
	if err == nil && !json.Valid([]byte(out)) {
		err = fmt.Errorf("molrun prune printed %.200s", out)
	}
	return milliseconds(took), err
}

// backup copies the database and looks for the result of every job. That there
// are none makes it fail in the end.
func (g *growing) backup(ctx context.Context) (float64, error) {
	began := time.Now()
	_, err := g.run(ctx, "backup", filepath.Join(g.testbed.dir, "backups"))
	took := time.Since(began)
	if err != nil && !strings.Contains(err.Error(), "the backup is complete but for") {
		return 0, err
	}
	return milliseconds(took), nil
}
