package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// costs lists the costs that might depend on the number of jobs, in the order of
// measurement. The ones that change the data most come last.
var costs = []struct {
	name    string // with its unit
	measure func(*growing, context.Context) (float64, error)
}{
	{"start to first answer, ms", (*growing).coldStart},
	{"memory after the start, MiB", (*growing).memory},
	{"database per job, KiB", (*growing).database},
	{"first page, ms", (*growing).firstPage},
	{"page 1,000, ms", (*growing).farPage},
	{"user and status, ms", (*growing).filtered},
	{"nothing found, ms", (*growing).nothing},
	{"submission, ms", (*growing).submission},
	{"batch of 10,000, ms", (*growing).batch},
	{"delete 100 old jobs, ms", (*growing).prune},
	{"backup, ms", (*growing).backup},
}

// Values of the flag --only of grow.
const (
	onlyCosts   = "costs"
	onlyFilters = "filters"
	onlyTable   = "table"
)

// growing is a server with a given number of jobs.
type growing struct {
	*server
	jobs     int
	duration time.Duration // of each measurement
}

// measureGrowth measures each cost for each number of jobs, prints a line of JSON for
// each number, and draws a chart if plot names a file.
func measureGrowth(ctx context.Context, o options, numbers []int, plot string) error {
	series := make([][]point, len(costs))
	seeded := o.Seeded
	if slices.Contains(o.Only, onlyTable) {
		o.logf("a batch of %d rows", tableRows)
		f, err := measureTable(ctx, o)
		if err != nil {
			return fmt.Errorf("table of a batch: %w", err)
		}
		printLine(o.Lines, 1, "table", tableRows, f)
	}
	for k, n := range numbers {
		if o.Seeded = ""; k == len(numbers)-1 {
			o.Seeded = seeded
		}
		o.logf("%d jobs", n)
		f, filters, err := measureCosts(ctx, o, n)
		if err != nil {
			return fmt.Errorf("with %d jobs: %w", n, err)
		}
		if filters != nil {
			printLine(o.Lines, 1, "filters", n, filters)
		}
		if f == nil {
			continue
		}
		printLine(o.Lines, 1, "growth", n, f)
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
	return os.WriteFile(plot, drawChart(names, series), 0o644)
}

// measureCosts measures the newer filters and each cost on a new server with the given
// number of jobs.
func measureCosts(ctx context.Context, o options, jobs int) (f, filters figures, err error) {
	dir, err := os.MkdirTemp(o.Dir, "molrun-bench-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := newServer(o.Molrun, dir, 1)
	if err != nil {
		return nil, nil, err
	}
	if err := seedOrCopy(ctx, o.Seeded, s.data(), jobs, nil); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if _, err := s.start(ctx); err != nil {
		return nil, nil, err
	}
	g := &growing{s, jobs, o.Duration}
	if slices.Contains(o.Only, onlyFilters) {
		if filters, err = g.measureLater(ctx); err != nil {
			return nil, nil, err
		}
	}
	if !slices.Contains(o.Only, onlyCosts) {
		return nil, filters, nil
	}
	f = figures{}
	for _, c := range costs {
		if f[c.name], err = c.measure(g, ctx); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return f, filters, nil
}

func (g *growing) coldStart(ctx context.Context) (float64, error) {
	took, err := g.restart(ctx)
	return milliseconds(took), err
}

func (g *growing) memory(context.Context) (float64, error) { return anonymousMemory(g.pid()) }

func (g *growing) database(context.Context) (float64, error) {
	size, err := bytesPerJob(g.server, g.jobs)
	return size / 1024, err
}

// request returns the median time of a request.
func (g *growing) request(ctx context.Context, path string) (float64, error) {
	s, err := closedLoop(ctx, 1, g.duration/4, g.calling(g.get(path)))
	return s.quantile(.5), err
}

func (g *growing) firstPage(ctx context.Context) (float64, error) {
	return g.request(ctx, firstPage)
}

// farPage requests page 1,000, or the last page if there are fewer.
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
		path = pageAfter(cursor)
	}
	return g.request(ctx, path)
}

func (g *growing) filtered(ctx context.Context) (float64, error) {
	return g.request(ctx, filter{user: seedUser(1), status: "FAILED"}.path())
}

func (g *growing) nothing(ctx context.Context) (float64, error) {
	return g.request(ctx, filter{user: absentUser, algorithm: seedAlgorithm(0), status: "COMPLETED"}.path())
}

// submission returns the median time of a submission. It blocks the queue first, so that
// no submitted job runs.
func (g *growing) submission(ctx context.Context) (float64, error) {
	if err := g.block(); err != nil {
		return 0, err
	}
	s, err := closedLoop(ctx, 1, g.duration/2, g.submitting())
	return s.quantile(.5), err
}

func (g *growing) batch(context.Context) (float64, error) {
	const rows = 10_000
	row := `{"note":"` + note + `"}`
	body := `{"batchName":"rows","type":"nothing","settings":[` + strings.Repeat(row+",", rows-1) + row + `]}`
	began := time.Now()
	err := g.call(g.post("/submit-batch", []byte(body)), nil)
	return milliseconds(time.Since(began)), err
}

// prune measures the deletion of the oldest jobs, as retention does it.
func (g *growing) prune(ctx context.Context) (float64, error) {
	const most = 100
	deleted := min(most, g.jobs/2)
	age := time.Duration(float64(seedYears*365*24*time.Hour) * (1 - float64(deleted)/float64(g.jobs)))
	began := time.Now()
	out, err := g.run(ctx, "prune", "--older-than", age.Truncate(time.Second).String(), "--yes", "--json")
	took := time.Since(began)
	if err == nil && !json.Valid([]byte(out)) {
		err = fmt.Errorf("molrun prune printed %.200s", out)
	}
	return milliseconds(took), err
}

// backup measures a backup, which copies the database and looks for the result of every
// job. The command fails in the end because seeded jobs have no results.
func (g *growing) backup(ctx context.Context) (float64, error) {
	began := time.Now()
	_, err := g.run(ctx, "backup", filepath.Join(g.dir, "backups"))
	took := time.Since(began)
	if err != nil && !strings.Contains(err.Error(), "the backup was made, but the data itself has") {
		return 0, err
	}
	return milliseconds(took), nil
}
