package faults

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/test/cluster"
	"molrun/app/test/must"
)

// The cost of a batch of known short jobs on a cluster, compared with a plain Slurm array
// of the same program, and with one Slurm job that runs the program in a loop. This is a
// measurement, which checks only that all jobs complete.
func TestShortRowsNextToAPlainArray(t *testing.T) {
	if *shortRows == 0 {
		t.Skip("skipped: it measures -short-rows")
	}
	oneCluster(t)
	c := cluster.New(t, cluster.Knobs{
		Nodes: 2, CPUs: 4, MemoryMiB: 8000, NoGPUs: true, SlurmdTimeout: 300,
		Extra: fmt.Sprintf("MaxJobCount=50000\nMaxArraySize=%d\n", *arraySize),
	})
	s := newSite(t, c, "max_jobs = 20000\n")
	program := shortProgram()
	file := fmt.Sprintf(shortFile, strings.Join(program, `", "`), max(*shortTime, 0.05))
	must.OK(t, os.WriteFile(s.path("algorithms", "short.toml"), []byte(file), 0o600))
	s.start()
	s.measureShort("first", 4) // warms up the cluster
	peer := cmp.Or(*shortPeer, *shortRows)
	for round := range *shortRuns {
		before := sum(s.arrays())
		rows, jobs := s.measureShort(fmt.Sprintf("round%d", round), *shortRows), sum(s.arrays())-before
		array, loop := s.plainArray(peer, program), s.loop(peer, program)
		t.Logf("%d rows of %q: %.1f per second, in %d jobs of Slurm; plain array of %d: %.1f per second; loop: %.1f per second",
			*shortRows, program, rows, jobs, peer, array, loop)
	}
}

// shortProgram is the command of each job.
func shortProgram() []string {
	if *shortTime == 0 {
		return []string{"/bin/true"}
	}
	return []string{"/bin/sleep", fmt.Sprint(*shortTime)}
}

const shortFile = `format = 1
type = "short"
version = "1"
title = "A short program"
max_runtime = "1h"
command = ["%s"]

[[parameters]]
name = "note"
type = "string"
required = true

[estimate]
expected_seconds = %g

[resources]
memory = "16MiB"
`

// measureShort submits a batch and returns its rate in jobs per second, from submission
// to completion.
func (s *site) measureShort(name string, n int) (rate float64) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), shortLimit(n))
	defer cancel()
	submission := client.BatchSubmission{Name: name, Type: "short"}
	for i := range n {
		submission.Settings = append(submission.Settings, json.RawMessage(fmt.Sprintf(`{"note":"%s %d"}`, name, i)))
	}
	begin := time.Now()
	_, err := s.client().SubmitBatch(ctx, submission)
	must.OK(s.t, err)
	ended, err := s.client().Wait(ctx, name)
	must.OK(s.t, err)
	if ended.Counts["COMPLETED"] != n {
		s.t.Fatalf("the batch %s: %v", name, ended.Counts)
	}
	return float64(n) / time.Since(begin).Seconds()
}

// shortLimit returns the maximum time to wait for n short jobs or Slurm tasks.
func shortLimit(n int) time.Duration {
	return patience + time.Duration(float64(n)*(*shortTime+1)*float64(time.Second))
}

// plainArray returns how many runs of a program per second Slurm achieves with an array.
// If an array would be too large for the cluster, it submits several.
func (s *site) plainArray(n int, program []string) (rate float64) {
	s.t.Helper()
	begin := time.Now()
	var ids []string
	for left := n; left > 0; {
		size := min(left, *arraySize-1)
		ids = append(ids, s.sbatch("--array", fmt.Sprintf("1-%d", size), "--wrap", "exec "+strings.Join(program, " ")))
		left -= size
	}
	s.awaitSlurm(shortLimit(n), ids)
	return float64(n) / time.Since(begin).Seconds()
}

// loop returns how many runs of a program per second one Slurm job with one CPU achieves.
func (s *site) loop(n int, program []string) (rate float64) {
	s.t.Helper()
	begin := time.Now()
	id := s.sbatch("--wrap", fmt.Sprintf("for n in $(seq %d); do %s; done", n, strings.Join(program, " ")))
	s.awaitSlurm(shortLimit(n), []string{id})
	return float64(n) / time.Since(begin).Seconds()
}

// sbatch submits a job and returns its ID.
func (s *site) sbatch(args ...string) string {
	s.t.Helper()
	args = append([]string{"--parsable", "--ntasks", "1", "--mem", "16", "--output", filepath.Join(s.t.TempDir(), "out-%a")}, args...)
	return strings.TrimSpace(s.cluster.Run(s.t, "sbatch", args...))
}

// awaitSlurm waits until the given Slurm jobs have ended.
func (s *site) awaitSlurm(within time.Duration, ids []string) {
	s.t.Helper()
	begin := time.Now()
	for strings.TrimSpace(s.cluster.Run(s.t, "squeue", "--noheader", "--jobs", strings.Join(ids, ","))) != "" {
		if time.Since(begin) > within {
			s.t.Fatalf("jobs of Slurm did not end within %v", within)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
