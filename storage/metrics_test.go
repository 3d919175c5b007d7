package storage

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"molrun/app"
	"molrun/app/test/must"
	"molrun/storage/kv"
)

// putRows puts a batch with one completed row for each of these results.
func putRows(t testing.TB, s *Store, results ...string) (batch app.JobID) {
	t.Helper()
	parent := testJob(1)
	parent.Counts = &app.Counts{Completed: len(results)}
	jobs := []*app.Job{parent}
	for n, text := range results {
		j := testJob(n + 2)
		j.Batch, j.Private.Batch, j.Private.Row = parent.Name, parent.ID, n
		j.Status, j.CompletedAt = app.Completed, j.CreatedAt
		j.Metrics = &app.Metrics{Results: json.RawMessage(text)}
		jobs = append(jobs, j)
	}
	for some := range slices.Chunk(jobs, 500) {
		putJobs(t, s, some...)
	}
	return parent.ID
}

func TestOrderByMetricOfAnOlderDatabase(t *testing.T) {
	path := newPath(t)
	s := openAt(t, path, Options{})
	f := app.JobFilter{Organization: "lab", Batch: putRows(t, s, `{"e":2}`, `{"e":-10}`, `{"other":1}`, `{"e":-9.5}`), Metric: "e"}
	must.OK(t, s.Close())
	edit(t, path, func(tx *bolt.Tx) error {
		if err := tx.Bucket([]byte(kv.Meta)).Delete([]byte("index " + indexJobsMetrics)); err != nil {
			return err
		}
		return tx.DeleteBucket([]byte(indexJobsMetrics))
	})
	s = openAt(t, path, Options{})
	view(t, s, func(tx app.Tx) error {
		must.Equal(t, "highest first", namesOf(t, tx, f), []string{"job-2", "job-5", "job-3", "job-4"})
		f.Ascending = true
		must.Equal(t, "lowest first", namesOf(t, tx, f), []string{"job-3", "job-5", "job-2", "job-4"})
		return nil
	})
	checkStore(t, s)
}

// TestMetricsOfARowAreBounded stores the results of a program that reports too many
// metrics.
func TestMetricsOfARowAreBounded(t *testing.T) {
	s := openNew(t)
	long := fmt.Sprintf(`"%s":1,`, strings.Repeat("l", 101))
	var many strings.Builder
	for i := range 150 {
		fmt.Fprintf(&many, `"m%03d":%d,`, i, i)
	}
	batch := putRows(t, s, "{"+long+many.String()+`"z":1}`, `{"y":1}`)
	view(t, s, func(tx app.Tx) error {
		names, err := tx.MetricNames(batch, 1000)
		if err != nil || len(names) != 101 || names[0] != "m000" || names[99] != "m099" || names[100] != "y" {
			t.Errorf("names %q, %v; want m000 to m099 and y", names, err)
		}
		if names, err = tx.MetricNames(batch, 3); err != nil || len(names) != 3 {
			t.Errorf("names %q, %v; want 3", names, err)
		}
		return nil
	})
}

func TestCutMetricsAreRefused(t *testing.T) {
	value := appendMetrics(nil, json.RawMessage(`{"e":1.5,"text":"a"}`))
	number := 1 + 1 + 1 + 8
	for n := range value {
		_, _, err := cutMetric(value[:max(1, min(n, number-1))])
		if err == nil {
			t.Errorf("% x is read", value[:n])
		}
	}
	if _, _, err := cutMetric([]byte("\x01ex\x00\x00\x00\x00\x00\x00\x00\x00")); err == nil {
		t.Error("an unknown kind is read")
	}
}
