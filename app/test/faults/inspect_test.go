package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/test/must"
)

// unfinished waits until no job is queued or running. If ctx ends first, it
// returns the unfinished jobs.
func unfinished(ctx context.Context, t *testing.T, c *client.Client) (names []string) {
	t.Helper()
	for {
		var now []string
		for _, status := range []string{"QUEUED", "RUNNING"} {
			for job, err := range c.Jobs(ctx, client.JobFilter{WholeOrganization: true, Status: status, PageSize: 100}) {
				if err != nil && ctx.Err() == nil {
					t.Fatal(err)
				}
				if err == nil {
					now = append(now, fmt.Sprintf("%s is %s (%s) in attempt %d", job.Name, job.Status, job.StatusReason, job.Attempts))
				}
			}
		}
		if ctx.Err() != nil {
			return append(names, now...)
		}
		if len(now) == 0 {
			return nil
		}
		names = now
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// inspect compares every job with its diary page and counts it in the tally.
func (g *campaign) inspect(c *client.Client, v *verdict) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	defer cancel()
	for job, err := range everyJob(ctx, c) {
		must.OK(g.t, err)
		g.inspectJob(ctx, c, job, v)
	}
}

func (g *campaign) inspectJob(ctx context.Context, c *client.Client, job *client.Job, v *verdict) {
	fact := g.ledger.jobs[job.Name]
	if fact == nil || fact.rows != nil {
		return // unknown jobs are reported by verify; batches run nothing themselves
	}
	p := readPage(g.path("diary", job.Name))
	g.add(job, p, fact)
	v.comparePage(job, p)
	switch job.Status {
	case "COMPLETED":
		v.compareCompleted(job, p)
		if !g.read[job.ID] {
			g.read[job.ID] = true
			g.compareResult(ctx, c, job, v)
		}
	case "FAILED":
		v.compareFailed(job, p, fact)
	}
}

// add counts a job in the tally.
func (g *campaign) add(job *client.Job, p page, fact *jobFact) {
	g.jobs++
	g.attempts += job.Attempts
	ends := 0
	for _, s := range p.executions {
		if s.resumed {
			g.resumed++
		}
		if !s.end.IsZero() {
			ends++
		}
	}
	if !fact.retried {
		g.repeated += max(0, ends-1)
		g.longest = max(g.longest, job.CompletedAt.Sub(job.CreatedAt))
	}
	switch {
	case job.Status == "COMPLETED":
		g.completed++
	case job.Failure != nil && job.Failure.Code == "STOPPED":
		g.stopped++
	default:
		g.failed++
	}
}

// comparePage looks for attempts that ran twice or overlapped.
func (v *verdict) comparePage(job *client.Job, p page) {
	if p.wrong != "" {
		v.other = append(v.other, fmt.Sprintf("the diary of job %s: %s", job.Name, p.wrong))
	}
	if len(p.overlaps) > 0 {
		v.duplicated = append(v.duplicated, fmt.Sprintf("attempts of job %s overlapped: %+v", job.Name, p))
	}
	for i, s := range p.executions {
		if i > 0 && (s.attempt <= p.executions[i-1].attempt || s.begin.Before(p.executions[i-1].end)) {
			v.duplicated = append(v.duplicated, fmt.Sprintf("job %s: %+v follows %+v", job.Name, s, p.executions[i-1]))
		}
		if s.attempt > job.Attempts {
			v.duplicated = append(v.duplicated, fmt.Sprintf("job %s has %d attempts, but the diary has %+v", job.Name, job.Attempts, s))
		}
	}
}

// compareCompleted checks that the last attempt succeeded.
func (v *verdict) compareCompleted(job *client.Job, p page) {
	if n := len(p.executions); n == 0 || p.executions[n-1].attempt != job.Attempts || p.executions[n-1].end.IsZero() || p.executions[n-1].code != 0 {
		v.other = append(v.other, fmt.Sprintf("job %s is completed in attempt %d, but its diary says %+v", job.Name, job.Attempts, p))
	}
}

// compareFailed checks that the job failed for one of two reasons: a client
// cancelled it, or its program exits with an error.
func (v *verdict) compareFailed(job *client.Job, p page, fact *jobFact) {
	n := len(p.executions)
	ran := n > 0 && p.executions[n-1].attempt == job.Attempts && !p.executions[n-1].end.IsZero()
	switch f := job.Failure; {
	case f == nil:
		v.other = append(v.other, fmt.Sprintf("job %s failed without a reason", job.Name))
	case f.Code == "STOPPED" && (fact.cancelling || fact.retried):
	case f.ExitCode != nil && *f.ExitCode == 3 && ran && p.executions[n-1].code == 3:
	default:
		v.other = append(v.other, fmt.Sprintf("job %s failed: %+v; its diary says %+v", job.Name, *f, p))
	}
}

// compareResult checks a job's output: it lists every step once, in order, even
// if several attempts wrote it.
func (g *campaign) compareResult(ctx context.Context, c *client.Client, job *client.Job, v *verdict) {
	var settings struct{ Steps int }
	must.OK(g.t, json.Unmarshal(job.Settings, &settings))
	files := map[string]string{"result.txt": diaryResult(job.Name)}
	if settings.Steps > 0 {
		var want strings.Builder
		for n := range settings.Steps {
			fmt.Fprintln(&want, n+1)
		}
		files["steps"] = want.String()
	}
	for name, want := range files {
		link, err := c.Result(ctx, client.ResultRequest{Job: job.Name, File: name})
		if err != nil {
			v.lost = append(v.lost, fmt.Sprintf("%s of job %s: %v", name, job.Name, err))
			continue
		}
		if text, err := get(ctx, link.DownloadURL); err != nil || text != want {
			v.lost = append(v.lost, fmt.Sprintf("%s of job %s is %q, error %v", name, job.Name, text, err))
		}
	}
}

// checkLeftovers looks for leftovers of the finished jobs: in Slurm, as
// processes, in the shared directory.
func (g *campaign) checkLeftovers(v *verdict) {
	g.t.Helper()
	// The end of a job may be lost with its controller. Slurm looks for the job some time
	// later.
	left := g.waitForNone(g.inSlurm, finishTimeout)
	for _, line := range left {
		v.orphans = append(v.orphans, "in Slurm: "+line)
	}
	for _, dir := range g.waitForNone(g.attemptDirs, patience/2) {
		v.other = append(v.other, "left in the shared directory: "+dir)
	}
	g.findOrphans(v)
	known := map[string]bool{}
	for _, fact := range g.ledger.jobs {
		known[fact.id] = true
	}
	for _, dir := range g.submitted() {
		if id := filepath.Base(filepath.Dir(dir)); !known[id] && id != "pilots" {
			v.other = append(v.other, "submitted to Slurm, but no client asked for it: "+dir)
		}
	}
}

// waitForNone calls list until it returns nothing. After the given time it gives up and
// returns what is left.
func (s *site) waitForNone(list func() []string, within time.Duration) (left []string) {
	for begin := time.Now(); time.Since(begin) < within; time.Sleep(100 * time.Millisecond) {
		if left = list(); len(left) == 0 {
			return nil
		}
	}
	return left
}

// attemptDirs returns the attempts' directories in the shared directory.
func (s *site) attemptDirs() []string {
	left, err := filepath.Glob(filepath.Join(s.shared, "attempts", "*"))
	must.OK(s.t, err)
	return left
}

// submitted returns the attempts' directories that were submitted to Slurm.
func (s *site) submitted() (dirs []string) {
	lists, err := filepath.Glob(filepath.Join(s.shared, "submissions", "*"))
	must.OK(s.t, err)
	for _, list := range lists {
		if filepath.Ext(list) != "" {
			continue // it contains a job's number
		}
		text, err := os.ReadFile(list)
		must.OK(s.t, err)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		for _, line := range lines[1:] {
			_, dir, _ := strings.Cut(line, " ")
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
