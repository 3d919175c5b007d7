package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/test/must"
)

// verdict collects the results of comparing a service with its ledger.
type verdict struct {
	lost, duplicated, stuck, orphans, other []string

	mayFail   bool // the fault can make jobs fail
	mayRepeat bool // an attempt can be lost after its program has ended
}

func (v *verdict) String() string {
	return fmt.Sprintf("lost %d, duplicated %d, stuck %d, orphans %d",
		len(v.lost), len(v.duplicated), len(v.stuck), len(v.orphans))
}

// findings returns up to 20 findings of each kind.
func (v *verdict) findings() (lines []string) {
	for what, all := range map[string][]string{
		"lost": v.lost, "duplicated": v.duplicated, "stuck": v.stuck, "orphan process": v.orphans, "wrong": v.other,
	} {
		for _, one := range all[:min(len(all), 20)] {
			lines = append(lines, what+": "+one)
		}
	}
	return lines
}

// report fails the test, with an error for each finding.
func (v *verdict) report(t *testing.T) {
	t.Helper()
	for _, line := range v.findings() {
		t.Error(line)
	}
}

// stop ends the test if there are any findings.
func (v *verdict) stop(t *testing.T) {
	t.Helper()
	if len(v.lost)+len(v.duplicated)+len(v.stuck)+len(v.orphans)+len(v.other) > 0 {
		v.report(t)
		t.FailNow()
	}
}

// sameSettings reports whether a job has the submitted settings.
func sameSettings(job *client.Job, s client.Submission) bool {
	var a, b bytes.Buffer
	return json.Compact(&a, job.Settings) == nil && json.Compact(&b, s.Settings) == nil && bytes.Equal(a.Bytes(), b.Bytes())
}

// verify compares all jobs and uploads with the ledger while no client is active. It
// downloads files that have not been verified, or all files if again is set.
func (s *server) verify(l *ledger, v *verdict, again bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := s.client()
	defer c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	v.other = append(v.other, l.faults...)
	l.faults = nil
	must.OK(s.t, l.compareJobs(ctx, c, v))
	must.OK(s.t, l.compareFiles(ctx, c, s.base, v, again))
}

// compareJobs compares all jobs. The caller has locked the ledger.
func (l *ledger) compareJobs(ctx context.Context, c *client.Client, v *verdict) error {
	there, ids := map[string]*client.Job{}, map[string]string{}
	take := func(job *client.Job) {
		if there[job.Name] != nil || ids[job.ID] != "" {
			v.duplicated = append(v.duplicated, fmt.Sprintf("job %s with id %s", job.Name, job.ID))
		}
		there[job.Name], ids[job.ID] = job, job.Name
		if l.jobs[job.Name] == nil {
			v.other = append(v.other, "no client submitted job "+job.Name)
		}
	}
	for job, err := range everyJob(ctx, c) {
		if err != nil {
			return fmt.Errorf("list jobs: %w", err)
		}
		take(job)
	}
	for name, fact := range l.jobs {
		for _, row := range fact.rows {
			if (there[row] == nil) != (there[name] == nil) {
				v.lost = append(v.lost, fmt.Sprintf("batch %s is incomplete: row %s exists: %v", name, row, there[row] != nil))
			}
		}
		fact.compare(name, there[name], v)
	}
	return nil
}

// everyJob iterates over all jobs, with each batch before its jobs. It stops at the first
// error.
func everyJob(ctx context.Context, c *client.Client) iter.Seq2[*client.Job, error] {
	return func(yield func(*client.Job, error) bool) {
		for job, err := range c.Jobs(ctx, client.JobFilter{WholeOrganization: true, Subjobs: true, PageSize: 100}) {
			if !yield(job, err) || err != nil {
				return
			}
			for row, err := range rowsOf(ctx, c, job) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

// rowsOf iterates over the jobs of a batch in a listing. A page contains only a few
// megabytes of jobs, so a longer batch needs its own listing.
func rowsOf(ctx context.Context, c *client.Client, batch *client.Job) iter.Seq2[*client.Job, error] {
	if batch.SubjobsTruncated {
		return c.Jobs(ctx, client.JobFilter{Batch: batch.Name, WholeOrganization: true, PageSize: 100})
	}
	return func(yield func(*client.Job, error) bool) {
		for i := range batch.Subjobs {
			if !yield(&batch.Subjobs[i], nil) {
				return
			}
		}
	}
}

// compare compares one job. job is nil if the service has none with this name.
func (f *jobFact) compare(name string, job *client.Job, v *verdict) {
	switch {
	case f.deleting && !f.deleted:
		f.deleted = job == nil // both outcomes are allowed, but from now on this one must not change
		f.deleting = f.deleted
	case job == nil && f.id != "" && !f.deleted:
		v.lost = append(v.lost, "job "+name)
	case job != nil && f.deleted:
		v.lost = append(v.lost, "the deletion of job "+name)
	}
	if job == nil {
		return
	}
	if f.id == "" {
		f.id = job.ID // the response was lost, but from now on the ID must not change
	}
	if f.id != job.ID {
		v.duplicated = append(v.duplicated, fmt.Sprintf("job %s was %s and is now %s", name, f.id, job.ID))
	}
	if f.rows == nil && !sameSettings(job, f.submission) {
		v.lost = append(v.lost, "the settings of job "+name)
	}
	f.compareChanges(name, job, v)
	if f.final != "" && f.final != job.Status {
		v.lost = append(v.lost, fmt.Sprintf("the final status of job %s: it was %s and is now %s", name, f.final, job.Status))
	}
	if job.Finished() {
		f.final = job.Status
	}
}

// compareChanges checks changes to the job that were acknowledged.
func (f *jobFact) compareChanges(name string, job *client.Job, v *verdict) {
	if f.pinned && !job.Pinned {
		v.lost = append(v.lost, "the pin of job "+name)
	}
	switch {
	case f.retrying:
		f.retrying, f.retried, f.stopping, f.attempts = false, true, false, 0 // both outcomes are allowed, but from now on this one must not change
	case f.stopping && (!job.Finished() && job.StatusReason != "being stopped" || job.Attempts > f.attempts):
		v.lost = append(v.lost, fmt.Sprintf("the cancellation of job %s: it is %s (%s) in attempt %d", name, job.Status, job.StatusReason, job.Attempts))
	case f.retried && !f.cancelling && job.Status == "FAILED" && job.Attempts <= f.attempts:
		v.lost = append(v.lost, "the retry of job "+name)
	}
}

// compareFiles compares all uploads. The caller has locked the ledger.
func (l *ledger) compareFiles(ctx context.Context, c *client.Client, base string, v *verdict, again bool) error {
	there := map[string]*client.File{}
	for file, err := range c.Files(ctx, client.FileFilter{PageSize: 100}) {
		if err != nil {
			return fmt.Errorf("list files: %w", err)
		}
		if there[file.ID] != nil {
			v.duplicated = append(v.duplicated, "file "+file.ID)
		}
		there[file.ID] = file
	}
	for id, fact := range l.files {
		file := there[id]
		switch {
		case fact.deleting && !fact.deleted:
			fact.deleted = file == nil
			fact.deleting = fact.deleted
		case fact.deleted && file != nil:
			v.lost = append(v.lost, "the deletion of file "+id)
		case fact.deleted, file == nil && !fact.completed && len(l.excused) > 0: // uploads can expire after the clock was set ahead
		case file == nil || fact.sent && file.SHA256 != fact.sha256():
			v.lost = append(v.lost, fmt.Sprintf("upload %s, sent: %v: %+v", id, fact.sent, file))
		case fact.completed && (file.Status != "completed" || file.SHA256 != fact.sha256() || file.Size != int64(len(fact.text))):
			v.lost = append(v.lost, fmt.Sprintf("file %s: %+v", id, file))
		}
	}
	if err := l.compareParts(ctx, base, v); err != nil {
		return err
	}
	return l.compareBytes(ctx, base, v, again)
}

// compareParts compares the stored lengths of files that are being sent in parts. The
// caller has locked the ledger.
func (l *ledger) compareParts(ctx context.Context, base string, v *verdict) error {
	for id, fact := range l.files {
		if fact.parts == nil || fact.sent || len(l.excused) > 0 {
			continue
		}
		at, _, err := fact.parts.offset(ctx, base)
		if except(err, "NOT_FOUND") == nil && err != nil {
			v.lost = append(v.lost, "the parts of file "+id)
			continue
		}
		if err != nil {
			return fmt.Errorf("get the offset of file %s: %w", id, err)
		}
		if wrong := fact.parts.compare(at); wrong != "" {
			v.lost = append(v.lost, fmt.Sprintf("the parts of file %s: %s", id, wrong))
		}
	}
	return nil
}

// compareBytes downloads files and compares their content. The caller has locked the
// ledger.
func (l *ledger) compareBytes(ctx context.Context, base string, v *verdict, again bool) error {
	for id, fact := range l.files {
		if !fact.completed || fact.deleted || fact.fetched && !again {
			continue
		}
		text, err := get(ctx, base+fact.link)
		if except(err, l.excused...) == nil && err != nil {
			continue // the link may be rejected; the record of the file has already been compared
		}
		if except(err, "NOT_FOUND") == nil && err != nil {
			v.lost = append(v.lost, "the bytes of file "+id)
			continue
		}
		if err != nil {
			return fmt.Errorf("download file %s: %w", id, err)
		}
		if fact.fetched = text == fact.text; !fact.fetched {
			v.lost = append(v.lost, fmt.Sprintf("the bytes of file %s: got %d bytes, want %d, or they differ", id, len(text), len(fact.text)))
		}
	}
	return nil
}

// drain waits until every job is finished. Jobs that do not finish are recorded as stuck.
func (s *server) drain(l *ledger, v *verdict) {
	s.t.Helper()
	s.finishParts(l, v)
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
	defer cancel()
	c := s.client()
	defer c.Close()
	for name, fact := range l.jobs {
		if fact.id == "" || fact.deleted {
			continue
		}
		job, err := c.Wait(ctx, name)
		switch {
		case ctx.Err() != nil:
			v.stuck = append(v.stuck, name)
		case err != nil:
			v.other = append(v.other, fmt.Sprintf("wait for job %s: %v", name, err))
		case !s.remote && fact.rows == nil:
			v.compareDiary(job, s.readDiary(name), fact)
			s.compareOrder(name, fact, v)
		}
	}
}

// compareDiary compares a finished job with its page of the diary. No attempt may have
// run twice or overlapped with another, and the last attempt of a completed job must have
// succeeded. A job may have failed only because a client canceled it or its program exits
// with an error, unless the fault allows other reasons.
func (v *verdict) compareDiary(job *client.Job, p page, fact *jobFact) {
	v.comparePage(job, p)
	var last execution
	ends := 0
	for _, last = range p.executions {
		if !last.end.IsZero() {
			ends++
		}
	}
	ran := last.attempt == job.Attempts && !last.end.IsZero()
	switch f := job.Failure; {
	case job.Status == "COMPLETED":
		if !ran || last.code != 0 || ends > 1 && !v.mayRepeat && !fact.retried {
			v.other = append(v.other, fmt.Sprintf("job %s is completed in attempt %d, but its diary says %+v", job.Name, job.Attempts, p))
		}
	case f == nil || f.Message == "":
		v.other = append(v.other, fmt.Sprintf("job %s is %s without a reason", job.Name, job.Status))
	case v.mayFail || f.Code == "STOPPED" && (fact.cancelling || fact.retried):
	case f.ExitCode != nil && *f.ExitCode == 3 && ran && last.code == 3:
	default:
		v.other = append(v.other, fmt.Sprintf("job %s failed: %+v; its diary says %+v", job.Name, *f, p))
	}
}

// compareOrder checks that a job of a pipeline began only after the jobs that it waits
// for had succeeded.
func (s *server) compareOrder(name string, fact *jobFact, v *verdict) {
	own := s.readDiary(name).executions
	for _, before := range fact.after {
		all := s.readDiary(before).executions
		if len(own) == 0 {
			continue
		}
		if len(all) == 0 || all[len(all)-1].code != 0 || !all[len(all)-1].end.Before(own[0].begin) {
			v.other = append(v.other, fmt.Sprintf("job %s began too early: %+v; job %s: %+v", name, own[0], before, all))
		}
	}
}

// comparePage records attempts that ran twice or overlapped.
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

// findOrphans waits for the jobs' processes to exit. It records those that do not exit as
// orphans.
func (s *server) findOrphans(v *verdict) {
	s.t.Helper()
	for _, pid := range waitForNone(s.tasks, patience) {
		v.orphans = append(v.orphans, fmt.Sprint(pid))
	}
}

// waitForNone calls list until it returns nothing or the given time has passed, and
// returns the last list.
func waitForNone[T any](list func() []T, within time.Duration) (left []T) {
	for begin := time.Now(); time.Since(begin) < within; time.Sleep(50 * time.Millisecond) {
		if left = list(); len(left) == 0 {
			return nil
		}
	}
	return left
}

// conclude waits until all jobs are finished, compares everything and reports the
// result.
func (s *server) conclude(l *ledger, v *verdict) {
	s.t.Helper()
	s.verify(l, v, false)
	s.drain(l, v)
	s.findOrphans(v)
	s.verify(l, v, true)
	s.stop()
	s.check("--deep")
	v.report(s.t)
	s.t.Logf("acknowledged %d, %v", l.acknowledged(), v)
}
