package faults

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/test/cluster"
	"molrun/app/test/must"
)

// A batch must be submitted to the cluster in a few arrays, not job by job. Once its jobs
// are known to be short, they must share Slurm jobs.
func TestRowsOnTheCluster(t *testing.T) {
	oneCluster(t)
	most := *arraySize - 1 // maximum number of tasks in an array
	c := cluster.New(t, cluster.Knobs{
		Nodes: 2, CPUs: 4, MemoryMiB: 8000, NoGPUs: true,
		SlurmdTimeout: 300, // long, so that a busy machine is not mistaken for a failed node
		Extra:         fmt.Sprintf("MaxJobCount=50000\nMaxArraySize=%d\n", *arraySize),
	})
	s := newSite(t, c, fmt.Sprintf("max_jobs = %d\n", max(5000, *rows)))
	s.start()
	ctx, cancel := context.WithTimeout(t.Context(), patience+time.Duration(*rows)*time.Second)
	defer cancel()
	lab := s.client()
	begin := time.Now()
	_, err := lab.SubmitBatch(ctx, smallestRows("rows", *rows))
	must.OK(t, err)
	accepted := time.Since(begin)
	batch, err := lab.Wait(ctx, "rows")
	must.OK(t, err)
	took := time.Since(begin)
	if batch.Status != "COMPLETED" || batch.Counts["COMPLETED"] != *rows {
		t.Errorf("the batch is %s with %v, want %d COMPLETED", batch.Status, batch.Counts, *rows)
	}
	s.compareRows(ctx, lab, "rows")
	arrays := s.arrays()
	if want := (*rows + most - 1) / most; len(arrays) < want || len(arrays) > 5*want+5 {
		t.Errorf("%d rows took %d Slurm submissions; %d suffice", *rows, len(arrays), want)
	}
	t.Logf("%d rows: accepted after %v, completed after %v; %d sbatch, with %v tasks",
		*rows, accepted.Round(time.Millisecond), took.Round(time.Second), len(arrays), arrays)
	before := sum(arrays)
	begin = time.Now()
	_, err = lab.SubmitBatch(ctx, smallestRows("again", *rows))
	must.OK(t, err)
	_, err = lab.Wait(ctx, "again")
	must.OK(t, err)
	took = time.Since(begin)
	s.compareRows(ctx, lab, "again")
	if left := waitForNone(s.workerDirs, patience); len(left) > 0 {
		t.Errorf("%d worker directories remain: %v", len(left), left)
	}
	jobs := sum(s.arrays()) - before
	longest := max(s.longestRun(ctx, lab, "rows"), s.longestRun(ctx, lab, "again"))
	if longest <= fifthOfWorker && jobs > *rows/5+2 {
		t.Errorf("%d rows of at most %v took %d jobs of Slurm", *rows, longest, jobs)
	}
	t.Logf("once they are known to be short: completed after %v, in %d jobs of Slurm; the longest run took %v", took.Round(time.Millisecond), jobs, longest)
	before = sum(s.arrays())
	_, err = lab.SubmitBatch(ctx, briefRows("brief", *rows))
	must.OK(t, err)
	_, err = lab.Wait(ctx, "brief")
	must.OK(t, err)
	s.compareRows(ctx, lab, "brief")
	jobs, longest = sum(s.arrays())-before, s.longestRun(ctx, lab, "brief")
	if jobs >= *rows || longest <= fifthOfWorker && jobs > *rows/5+2 {
		t.Errorf("%d jobs declared short took %d Slurm jobs; the longest run took %v", *rows, jobs, longest)
	}
	t.Logf("declared short by the algorithm: %d Slurm jobs; the longest run took %v", jobs, longest)
	s.stop()
	s.check()
}

// fifthOfWorker is a fifth of the runtime that a worker claims at once, so that at least
// five jobs known to be no longer than this share one Slurm job. On a busy machine, jobs
// can take longer and fewer can share a Slurm job.
const fifthOfWorker = 800 * time.Millisecond

// longestRun returns the longest recorded runtime of a batch's jobs. Estimates of
// runtimes are based on these records.
func (s *site) longestRun(ctx context.Context, c *client.Client, batch string) (longest time.Duration) {
	s.t.Helper()
	for job, err := range c.Jobs(ctx, client.JobFilter{Batch: batch, PageSize: 100}) {
		must.OK(s.t, err)
		if m := job.Metrics; m != nil {
			longest = max(longest, time.Duration(m.RunSeconds*float64(time.Second)))
		}
	}
	return longest
}

// briefRows returns a batch of jobs that end immediately.
func briefRows(name string, n int) client.BatchSubmission {
	b := client.BatchSubmission{Name: name, Type: "brief"}
	for i := range n {
		b.Settings = append(b.Settings, briefJob(fmt.Sprintf("%s-%d", name, i+1)).Settings)
	}
	return b
}

func sum(numbers []int) (all int) {
	for _, n := range numbers {
		all += n
	}
	return all
}

// smallestRows returns a batch of the shortest simulations that the engine allows, with
// different seeds.
func smallestRows(name string, n int) client.BatchSubmission {
	b := client.BatchSubmission{Name: name, Type: "cg-idp", Terms: client.Terms{MaxRuntime: 600}}
	for i := range n {
		b.Settings = append(b.Settings, json.RawMessage(fmt.Sprintf(`{"sequences":["GGGGG"],"steps":1000,"seed":%d}`, i)))
	}
	return b
}

// compareRows checks every job of a batch, and that nothing remains on the cluster.
func (s *site) compareRows(ctx context.Context, c *client.Client, batch string) {
	s.t.Helper()
	seen := map[string]bool{}
	for job, err := range c.Jobs(ctx, client.JobFilter{Batch: batch, PageSize: 100}) {
		must.OK(s.t, err)
		if seen[job.Name] || job.Status != "COMPLETED" || job.Attempts != 1 || job.ResultBytes == 0 {
			s.t.Errorf("row %s is %s after %d attempts, with %d bytes", job.Name, job.Status, job.Attempts, job.ResultBytes)
		}
		seen[job.Name] = true
	}
	must.Equal(s.t, "the batch", len(seen), *rows)
	if left := append(waitForNone(s.inSlurm, patience), waitForNone(s.attemptDirs, patience/2)...); len(left) > 0 {
		s.t.Errorf("%d jobs or directories remain on the cluster: %s", len(left), left[0])
	}
}

// workerDirs returns the directories of workers.
func (s *site) workerDirs() []string {
	dirs, err := filepath.Glob(filepath.Join(s.shared, "workers", "*"))
	must.OK(s.t, err)
	return dirs
}

// arrays returns the number of tasks in each submission, largest first.
func (s *site) arrays() (tasks []int) {
	lists, err := filepath.Glob(filepath.Join(s.shared, "submissions", "*"))
	must.OK(s.t, err)
	for _, list := range lists {
		if filepath.Ext(list) == "" {
			text := must.Read(s.t, list)
			tasks = append(tasks, strings.Count(text, "\n")-1)
		}
	}
	slices.SortFunc(tasks, func(a, b int) int { return cmp.Compare(b, a) })
	return tasks
}
