package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/executor/slurm/cluster"
	"molrun/web/client"
)

// What a batch of rows costs on a cluster that do nothing and are known to be short, next to
// what Slurm itself needs for a plain array of the same program, and for one job that runs it
// in a loop. It is a measurement, and checks no more than that all rows end well.
func TestShortRowsNextToAPlainArray(t *testing.T) {
	if *shortRows == 0 {
		t.Skip("skipped: it measures -short-rows")
	}
	oneCluster(t)
	c := cluster.New(t, cluster.Knobs{
		Nodes: 2, CPUs: 4, MemoryMiB: 8000, NoGPUs: true, SlurmdTimeout: 300, Extra: "MaxJobCount=50000\nMaxArraySize=20001\n",
	})
	s := newSite(t, c, "max_jobs = 20000\n")
	must(t, os.WriteFile(s.path("algorithms", "nothing.toml"), []byte(nothingFile), 0o600))
	s.start()
	lab := s.client()
	batch := func(name string, n int) time.Duration {
		b := client.BatchSubmission{Name: name, Type: "nothing"}
		for i := range n {
			b.Settings = append(b.Settings, json.RawMessage(fmt.Sprintf(`{"note":"%s %d"}`, name, i)))
		}
		begin := time.Now()
		_, err := lab.SubmitBatch(t.Context(), b)
		must(t, err)
		ended, err := lab.Wait(t.Context(), name)
		must(t, err)
		took := time.Since(begin)
		if ended.Counts["COMPLETED"] != n {
			t.Fatalf("the batch %s: %v", name, ended.Counts)
		}
		return took
	}
	// phases says when the first row began, and when the last one had ended.
	phases := func(name string) string {
		var first, last, submitted time.Time
		for job, err := range lab.Jobs(t.Context(), client.JobFilter{Batch: name, PageSize: 100}) {
			must(t, err)
			submitted = job.CreatedAt
			if first.IsZero() || job.StartedAt.Before(first) {
				first = job.StartedAt
			}
			if job.CompletedAt.After(last) {
				last = job.CompletedAt
			}
		}
		return fmt.Sprintf("the first began after %v, the last had ended after %v", first.Sub(submitted), last.Sub(submitted))
	}
	batch("first", 4) // rows are known to be short
	n := *shortRows
	rate := func(took time.Duration) float64 { return float64(n) / took.Seconds() }
	for round := range 3 {
		service, commands := s.cpu()
		before := sum(s.arrays())
		rows := batch(fmt.Sprintf("round%d", round), n)
		serviceAfter, commandsAfter := s.cpu()
		array := slurmRuns(t, c, "--array", fmt.Sprintf("1-%d", n), "--wrap", "exec /bin/true")
		loop := slurmRuns(t, c, "--wrap", fmt.Sprintf("for n in $(seq %d); do /bin/true; done", n))
		load, err := os.ReadFile("/proc/loadavg")
		must(t, err)
		t.Logf("%d rows: %.1f per second, in %d jobs of Slurm; plain array %.1f, loop %.1f; %.1fx the array; %s; CPU of the service %v, of Slurm's commands %v; load %s",
			n, rate(rows), sum(s.arrays())-before, rate(array), rate(loop), rate(rows)/rate(array), phases(fmt.Sprintf("round%d", round)),
			serviceAfter-service, commandsAfter-commands, strings.Fields(string(load))[0])
	}
}

const nothingFile = `format = 1
type = "nothing"
version = "1"
title = "A program that does nothing"
max_runtime = "1h"
command = ["/bin/true"]

[[parameters]]
name = "note"
type = "string"
required = true

[resources]
memory = "16MiB"
`

// slurmRuns submits a job and returns how long it takes to its end.
func slurmRuns(t *testing.T, c *cluster.Cluster, args ...string) time.Duration {
	t.Helper()
	begin := time.Now()
	args = append([]string{"--parsable", "--ntasks", "1", "--mem", "16", "--output", filepath.Join(t.TempDir(), "out-%a")}, args...)
	id := strings.TrimSpace(c.Run(t, "sbatch", args...))
	for strings.TrimSpace(c.Run(t, "squeue", "--noheader", "--jobs", id)) != "" {
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(begin)
}
