package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/test/must"
)

// unfinished waits until no job is queued or running, or until ctx ends, and returns the
// unfinished jobs.
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

// inspect compares every job with its diary page, and counts the jobs.
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
		return // verify reports unknown jobs, and batches run nothing themselves
	}
	v.compareDiary(job, g.readDiary(job.Name), fact)
	g.jobs++
	if job.Status == "COMPLETED" && !g.read[job.ID] {
		g.read[job.ID] = true
		g.compareResult(ctx, c, job, v)
	}
}

// compareResult checks a job's output, which must list every step once and in order, even
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
		if text, err := result(ctx, c, job.Name, name); err != nil || text != want {
			v.lost = append(v.lost, fmt.Sprintf("%s of job %s is %q, error %v", name, job.Name, text, err))
		}
	}
}

// checkLeftovers looks for anything left of the finished jobs: in Slurm, as processes,
// and in the shared directory.
func (g *campaign) checkLeftovers(v *verdict) {
	g.t.Helper()
	// The controller can lose the end of a job when it crashes. Slurm notices some time
	// later.
	left := waitForNone(g.inSlurm, finishTimeout)
	for _, line := range left {
		v.orphans = append(v.orphans, "in Slurm: "+line)
	}
	for _, dir := range waitForNone(g.attemptDirs, patience/2) {
		v.other = append(v.other, "left in the shared directory: "+dir)
	}
	g.findOrphans(v)
	known := map[string]bool{}
	for _, fact := range g.ledger.jobs {
		known[fact.id] = true
	}
	for _, dir := range g.submitted() {
		if id := filepath.Base(filepath.Dir(dir)); !known[id] && id != "workers" {
			v.other = append(v.other, "submitted to Slurm, but no client asked for it: "+dir)
		}
	}
}

// attemptDirs returns the attempts' directories in the shared directory.
func (s *site) attemptDirs() []string {
	left, err := filepath.Glob(filepath.Join(s.shared, "attempts", "*"))
	must.OK(s.t, err)
	return left
}

// submitted returns the attempts' directories that are listed in submissions to Slurm.
func (s *site) submitted() (dirs []string) {
	lists, err := filepath.Glob(filepath.Join(s.shared, "submissions", "*"))
	must.OK(s.t, err)
	for _, list := range lists {
		if filepath.Ext(list) != "" {
			continue // its name contains a Slurm job ID
		}
		text := must.Read(s.t, list)
		lines := strings.Split(strings.TrimSpace(text), "\n")
		for _, line := range lines[1:] {
			_, dir, _ := strings.Cut(line, " ")
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
