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

	"molrun/web/client"
)

// unfinished waits until no job is queued or runs, and gives those that do when
// ctx ends.
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

// inspect compares every job with what its attempts noted, and adds them up.
func (g *campaign) inspect(c *client.Client, v *verdict) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	defer cancel()
	for job, err := range everyJob(ctx, c) {
		must(g.t, err)
		g.inspectJob(ctx, c, job, v)
	}
}

func (g *campaign) inspectJob(ctx context.Context, c *client.Client, job *client.Job, v *verdict) {
	fact := g.ledger.jobs[job.Name]
	if fact == nil || fact.rows != nil {
		return // verify has told, or a batch, which itself runs nothing
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

// add counts a job.
func (g *campaign) add(job *client.Job, p page, fact *jobFact) {
	g.jobs++
	g.attempts += job.Attempts
	ends := 0
	for _, s := range p.shifts {
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

// comparePage looks for attempts that ran twice or at once.
func (v *verdict) comparePage(job *client.Job, p page) {
	if p.wrong != "" {
		v.other = append(v.other, fmt.Sprintf("the diary of job %s: %s", job.Name, p.wrong))
	}
	if len(p.overlaps) > 0 {
		v.duplicated = append(v.duplicated, fmt.Sprintf("attempts of job %s ran at once: %+v", job.Name, p))
	}
	for i, s := range p.shifts {
		if i > 0 && (s.attempt <= p.shifts[i-1].attempt || s.begin.Before(p.shifts[i-1].end)) {
			v.duplicated = append(v.duplicated, fmt.Sprintf("job %s: %+v follows %+v", job.Name, s, p.shifts[i-1]))
		}
		if s.attempt > job.Attempts {
			v.duplicated = append(v.duplicated, fmt.Sprintf("job %s has %d attempts and ran %+v", job.Name, job.Attempts, s))
		}
	}
}

// compareCompleted demands that the last attempt ran to its good end.
func (v *verdict) compareCompleted(job *client.Job, p page) {
	if n := len(p.shifts); n == 0 || p.shifts[n-1].attempt != job.Attempts || p.shifts[n-1].end.IsZero() || p.shifts[n-1].code != 0 {
		v.other = append(v.other, fmt.Sprintf("job %s is completed in attempt %d and its diary says %+v", job.Name, job.Attempts, p))
	}
}

// compareFailed demands one of the two reasons that there are: somebody stopped
// the job, or its program fails.
func (v *verdict) compareFailed(job *client.Job, p page, fact *jobFact) {
	n := len(p.shifts)
	ran := n > 0 && p.shifts[n-1].attempt == job.Attempts && !p.shifts[n-1].end.IsZero()
	switch f := job.Failure; {
	case f == nil:
		v.other = append(v.other, fmt.Sprintf("job %s failed without a reason", job.Name))
	case f.Code == "STOPPED" && (fact.cancelling || fact.retried):
	case f.ExitCode != nil && *f.ExitCode == 3 && ran && p.shifts[n-1].code == 3:
	default:
		v.other = append(v.other, fmt.Sprintf("job %s failed: %+v; its diary says %+v", job.Name, *f, p))
	}
}

// compareResult reads what a job has left: every step once, in order, however
// many attempts shared them.
func (g *campaign) compareResult(ctx context.Context, c *client.Client, job *client.Job, v *verdict) {
	var settings struct{ Steps int }
	must(g.t, json.Unmarshal(job.Settings, &settings))
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

// lookAround finds what is left of jobs that have all ended: in Slurm, as
// processes, in the shared folder.
func (g *campaign) lookAround(v *verdict) {
	g.t.Helper()
	left := g.soonNone(g.inSlurm)
	for _, line := range left {
		v.orphans = append(v.orphans, "in Slurm: "+line)
	}
	for _, dir := range g.soonNone(g.attemptsLeft) {
		v.other = append(v.other, "left in the shared folder: "+dir)
	}
	g.findOrphans(v)
	known := map[string]bool{}
	for _, fact := range g.ledger.jobs {
		known[fact.id] = true
	}
	for _, dir := range g.submitted() {
		if id := filepath.Base(filepath.Dir(dir)); !known[id] {
			v.other = append(v.other, "nobody asked for what was submitted of "+dir)
		}
	}
}

// soonNone asks until there is nothing, for a while, and gives what there still
// is.
func (s *site) soonNone(ask func() []string) (left []string) {
	for begin := time.Now(); time.Since(begin) < patience/2; time.Sleep(100 * time.Millisecond) {
		if left = ask(); len(left) == 0 {
			return nil
		}
	}
	return left
}

// attemptsLeft gives the attempts' directories in the shared folder.
func (s *site) attemptsLeft() []string {
	left, err := filepath.Glob(filepath.Join(s.shared, "attempts", "*"))
	must(s.t, err)
	return left
}

// submitted gives the attempts' directories that lists of submissions name.
func (s *site) submitted() (dirs []string) {
	lists, err := filepath.Glob(filepath.Join(s.shared, "submissions", "*"))
	must(s.t, err)
	for _, list := range lists {
		if filepath.Ext(list) != "" {
			continue // a job's number
		}
		text, err := os.ReadFile(list)
		must(s.t, err)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		for _, line := range lines[1:] {
			_, dir, _ := strings.Cut(line, " ")
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
