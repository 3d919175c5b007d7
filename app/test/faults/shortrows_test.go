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

// What a batch of rows costs on a cluster that take little time or none and are known to be
// short, next to what Slurm itself needs for a plain array of the same program, and for one job
// that runs it in a loop. It is a measurement, and checks no more than that all rows end well.
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
	s.measureShort("first", 4) // the cluster is warm
	peer := cmp.Or(*shortPeer, *shortRows)
	for round := range *shortRuns {
		rows := s.measureShort(fmt.Sprintf("round%d", round), *shortRows)
		array := s.plainArray(peer, program)
		loop := s.loop(peer, program)
		load, err := os.ReadFile("/proc/loadavg")
		must.OK(t, err)
		t.Logf("%d rows of %q, %s; load %s", *shortRows, program, rows, strings.Fields(string(load))[0])
		t.Logf("plain array of %d: %.1f per second, %.1fx; loop: %.1f per second", peer, array, rows.rate/array, loop)
	}
}

// shortProgram is what each row runs.
func shortProgram() []string {
	if *shortTime == 0 {
		return []string{"/bin/true"}
	}
	return []string{"/bin/sleep", fmt.Sprint(*shortTime)}
}

const shortFile = `format = 2
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

// shortBatch is what a batch of short rows took.
type shortBatch struct {
	rate              float64 // rows per second, from the submission to the end of the batch
	jobs              int     // of Slurm
	phases            string
	service, commands time.Duration // CPU time

	// Peaks of the service's anonymous memory: until the submission was answered, in the
	// thirty seconds after that, and later, 0 if it had ended by then.
	submission, after, later int64
}

func (b shortBatch) String() string {
	said := fmt.Sprintf("%.1f per second, in %d jobs of Slurm; %s; CPU of the service %v, of Slurm's commands %v; "+
		"memory of the service %d MiB in the submission, %d MiB in the 30 s after it",
		b.rate, b.jobs, b.phases, b.service, b.commands, b.submission>>20, b.after>>20)
	if b.later > 0 {
		said += fmt.Sprintf(", %d MiB later", b.later>>20)
	}
	return said
}

// measureShort submits a batch and waits for its end.
func (s *site) measureShort(name string, n int) (b shortBatch) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), shortLimit(n))
	defer cancel()
	lab := s.client()
	submission := client.BatchSubmission{Name: name, Type: "short"}
	for i := range n {
		submission.Settings = append(submission.Settings, json.RawMessage(fmt.Sprintf(`{"note":"%s %d"}`, name, i)))
	}
	service, commands := s.cpu()
	before, begin := sum(s.arrays()), time.Now()
	watched := s.watchMemory()
	_, err := lab.SubmitBatch(ctx, submission)
	b.submission = watched()
	must.OK(s.t, err)
	watched = s.watchMemory()
	ended, err := s.untilFinished(ctx, name, 30*time.Second)
	b.after = watched()
	must.OK(s.t, err)
	if !ended.Finished() {
		watched = s.watchMemory()
		ended, err = lab.Wait(ctx, name)
		b.later = watched()
		must.OK(s.t, err)
	}
	b.rate = float64(n) / time.Since(begin).Seconds()
	if ended.Counts["COMPLETED"] != n {
		s.t.Fatalf("the batch %s: %v", name, ended.Counts)
	}
	serviceAfter, commandsAfter := s.cpu()
	b.service, b.commands = serviceAfter-service, commandsAfter-commands
	b.jobs, b.phases = sum(s.arrays())-before, s.phases(ctx, name)
	return b
}

// untilFinished returns a job when it has finished, or as it is after a time.
func (s *site) untilFinished(ctx context.Context, name string, within time.Duration) (*client.Job, error) {
	for begin := time.Now(); ; {
		left := within - time.Since(begin)
		job, err := s.client().NextJob(ctx, name, left)
		if err != nil || job.Finished() || left <= 0 {
			return job, err
		}
	}
}

// phases says when the first row began, and when the last one had ended.
func (s *site) phases(ctx context.Context, name string) string {
	s.t.Helper()
	var first, last, submitted time.Time
	for job, err := range s.client().Jobs(ctx, client.JobFilter{Batch: name, PageSize: 100}) {
		must.OK(s.t, err)
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

// shortLimit bounds the wait for so many short rows, or tasks of Slurm.
func shortLimit(n int) time.Duration {
	return patience + time.Duration(float64(n)*(*shortTime+1)*float64(time.Second))
}

// plainArray returns how many of a program Slurm runs per second in an array. One that would
// be too large for the cluster is submitted as several.
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

// loop returns how many of a program one job of Slurm with one CPU runs per second.
func (s *site) loop(n int, program []string) (rate float64) {
	s.t.Helper()
	begin := time.Now()
	id := s.sbatch("--wrap", fmt.Sprintf("for n in $(seq %d); do %s; done", n, strings.Join(program, " ")))
	s.awaitSlurm(shortLimit(n), []string{id})
	return float64(n) / time.Since(begin).Seconds()
}

// sbatch submits a job and returns its number.
func (s *site) sbatch(args ...string) string {
	s.t.Helper()
	args = append([]string{"--parsable", "--ntasks", "1", "--mem", "16", "--output", filepath.Join(s.t.TempDir(), "out-%a")}, args...)
	return strings.TrimSpace(s.cluster.Run(s.t, "sbatch", args...))
}

// awaitSlurm waits until Slurm has ended these jobs.
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
