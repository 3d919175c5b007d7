package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"molrun/app"
	"molrun/storage"
)

const (
	tableBatch = "screen"
	tableRows  = 10_000

	// tableAlgorithm is the algorithm file of the batch's jobs.
	tableAlgorithm = `
format = 1
type = "dock"
version = "1"
command = ["/bin/true"]

[[parameters]]
name = "steps"
type = "integer"

[[parameters]]
name = "temperature"
type = "integer"

[[parameters]]
name = "sequence"
type = "string"

[metrics]
affinity = { title = "Affinity", unit = "kcal/mol", better = "lower", rank = true }
`
)

// measureTable measures the table of results for a batch of the maximum size.
func measureTable(ctx context.Context, o options) (f figures, err error) {
	dir, err := os.MkdirTemp(o.Dir, "molrun-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := newServer(o.Molrun, dir, 1)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(seed(ctx, s.data(), minSeedGroup, nil), seedBatch(ctx, s.data())); err != nil {
		return nil, err
	}
	if _, err := s.start(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	f = figures{}
	path := "/jobs/" + tableBatch + "/table"
	for name, path := range map[string]string{
		"first page":          path,
		"as submitted":        path + "?sort=row",
		"first page of 1,000": path + "?limit=1000",
		"GET /jobs by metric": "/jobs?limit=50&organization=true&batch=" + tableBatch + "&sort=metric:affinity",
	} {
		took, err := closedLoop(ctx, 1, o.Duration/2, s.calling(s.get(path)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		f[name+", p50, ms"], f[name+", p99, ms"] = took.quantile(.5), took.quantile(.99)
	}
	return f, s.measureCSV(ctx, path+"?format=csv", o.Duration, f)
}

// measureCSV measures the download of the whole table, and the server's memory while
// several clients download it. The response has no Content-Length, so it uses net/http
// rather than conn.
func (s *server) measureCSV(ctx context.Context, path string, d time.Duration, f figures) error {
	fetch := func() error {
		r, err := http.NewRequestWithContext(ctx, "GET", "http://"+s.address+path, nil)
		if err != nil {
			return err
		}
		r.Header.Set("X-Api-Key", s.key)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		lines, err := io.Copy(io.Discard, resp.Body)
		if err == nil && (resp.StatusCode != http.StatusOK || lines < tableRows*seedSettings) {
			err = fmt.Errorf("%s: status %d, %d bytes", path, resp.StatusCode, lines)
		}
		return err
	}
	for _, clients := range []int{1, 8} {
		stop := peakMemory(s.pid())
		took, err := closedLoop(ctx, clients, d, local(fetch))
		f[fmt.Sprintf("memory while %d fetch CSV, MiB", clients)] = stop()
		if err != nil {
			return err
		}
		f[fmt.Sprintf("CSV for %d, p50, ms", clients)] = took.quantile(.5)
	}
	return nil
}

// seedBatch adds a batch of completed jobs to the database of a data directory that no
// service is using.
func seedBatch(ctx context.Context, data string) (err error) {
	store, err := storage.Open(filepath.Join(data, "jobs.db"), storage.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	sum := sha256.Sum256([]byte(tableAlgorithm))
	definition := hex.EncodeToString(sum[:])
	s := newSeeding(tableRows + 1)
	s.first, s.every = time.Now().Add(-time.Hour), time.Millisecond
	next := func(name string) *app.Job {
		j := s.next()
		j.Name, j.Email, j.Type, j.Status, j.Failure, j.Tags = name, seedUser(0), "dock", app.Completed, nil, nil
		j.Private.Definition = definition
		return j
	}
	parent := next(tableBatch)
	parent.Counts, parent.Settings, parent.Metrics = &app.Counts{Completed: tableRows}, nil, nil
	parent.Private.Varying = []string{"sequence", "steps", "temperature"}
	jobs := []*app.Job{parent}
	for n := range tableRows {
		j := next(fmt.Sprintf("%s-%d", tableBatch, n+1))
		j.Batch, j.Private.Batch, j.Private.Row = parent.Name, parent.ID, n
		j.Metrics.Results = json.RawMessage(fmt.Sprintf(
			`{"affinity":%.3f,"clashes":%d,"converged":true,"efficiency":%.4f,"poses":9,"rmsd":%.3f}`,
			-12*s.random.Float64(), s.random.IntN(5), s.random.Float64(), 3*s.random.Float64(),
		))
		jobs = append(jobs, j)
	}
	return store.Update(ctx, func(tx app.Tx) error {
		if err := tx.PutDefinition(definition, []byte(tableAlgorithm)); err != nil {
			return err
		}
		for _, j := range jobs {
			if err := tx.PutJob(j); err != nil {
				return err
			}
		}
		return nil
	})
}
