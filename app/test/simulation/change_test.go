package simulation

import (
	"fmt"
	"slices"
	"time"

	"molrun/app"
)

// apply checks a commit against the rules and then applies it to the ledger.
func (s *simulation) apply(c *change) {
	r := s.requests[c.label]
	if r != nil {
		r.expect(s, c)
	}
	s.changed = s.changed || c.ran
	if !c.ran || c.err != nil {
		return
	}
	s.applyHooks(c)
	if len(c.jobs) == 0 {
		s.applyUploads(c)
		return
	}
	s.tracef("  %s commits:", c.label)
	for _, j := range c.jobs {
		old := s.ledger.jobs[j.id]
		if err := s.judge(c, old, j); err != nil {
			s.faultf("%s: %s: %v", c.label, s.names.of(j.id), err)
		}
		s.tracef("    %s: %s -> %s", s.names.of(j.id), brief(old), brief(j.entry()))
	}
	s.addExpectedEvents(c)
	for _, j := range c.jobs {
		s.enter(r, j)
	}
	s.applyUploads(c)
	s.excuseChanged(c)
	s.judgeBatches(c)
	if r != nil {
		r.judgeEffect(s)
	}
	s.judgeResources()
}

func (j *jobChange) entry() *entry {
	if j.now == nil {
		return nil
	}
	return &entry{stored: j.now}
}

// brief returns a short description of a job's status for the trace.
func brief(e *entry) string {
	if e == nil {
		return "none"
	}
	text := string(e.Status)
	switch {
	case e.IsBatch():
		return fmt.Sprintf("%s %+v", text, *e.Counts)
	case e.Private.Stop:
		text += " stopping"
	case e.Private.Claimed:
		text += " claimed"
	}
	if e.Failure != nil {
		text += " " + string(e.Failure.Code)
	}
	return fmt.Sprintf("%s attempt %d", text, e.Attempts)
}

// enter updates the ledger with a change.
func (s *simulation) enter(r *request, j *jobChange) {
	if j.now == nil {
		delete(s.ledger.jobs, j.id)
		s.deleted[j.id] = true
		return
	}
	old := s.ledger.jobs[j.id]
	now := &entry{stored: j.now}
	if old != nil {
		now.submission, now.submittedAt, now.stopped = old.submission, old.submittedAt, old.stopped
	} else if r != nil {
		now.submission, now.submittedAt = r.submission, time.Now()
	}
	if now.Private.Stop && !old.Private.Stop {
		now.stopped = time.Now()
	}
	if now.waits() && (old == nil || !old.waits()) {
		now.waitsSince = time.Now()
	} else if now.waits() {
		now.waitsSince = old.waitsSince
	}
	s.ledger.jobs[j.id] = now
	s.ledger.highest = max(s.ledger.highest, j.id)
	if now.Private.Token != "" {
		s.ledger.tokens[now.Private.Token] = true
	}
}

// judge checks the change of one job.
func (s *simulation) judge(c *change, old *entry, j *jobChange) error {
	if s.pins(c, old, j) {
		pinned, err := pinnedAs(c, old, j.now)
		if err != nil {
			return err
		}
		old = pinned // the same transaction can also propagate another job's status to this one
	}
	switch {
	case j.now == nil && old == nil:
		return fmt.Errorf("a job that does not exist is deleted")
	case j.now == nil && (c.label.verb == "prune" || c.label.verb == "retain"):
		return s.judgePurged(c, old)
	case j.now == nil:
		return allow(c.label.verb == "delete" && old.Status.Finished() && !old.Private.Claimed, "an unfinished job is deleted")
	case old == nil:
		return s.judgeNew(c, j.now)
	case onlyPropagationMark(old, j.now):
		return nil
	case !sameWork(&old.Job, &j.now.Job):
		return fmt.Errorf("the submitted work has changed: %s, then %s", old.shown, j.now.shown)
	case old.Private.Needs != j.now.Private.Needs && c.label.verb != "finished":
		return fmt.Errorf("its memory has changed: %+v, then %+v", old.Private.Needs, j.now.Private.Needs)
	case old.Pinned != j.now.Pinned:
		return fmt.Errorf("its pin has changed")
	case old.IsBatch():
		return judgeParent(c, old, j.now)
	case old.Status == app.Completed:
		return fmt.Errorf("a completed job changes")
	case isPropagation(old, j.now):
		return s.judgePropagation(c, old, j.now)
	}
	if s.isRowOf(c, j.now) {
		return s.judgeRow(c, old, j.now)
	}
	rule, ok := changes[c.label.verb]
	if !ok {
		return fmt.Errorf("a %s must not change a job", c.label.verb)
	}
	return rule(s, old, j.now)
}

func allow(is bool, otherwise string) error {
	if is {
		return nil
	}
	return fmt.Errorf("%s", otherwise)
}

// sameWork reports whether two records agree in the fields that never change.
func sameWork(a, b *app.Job) bool {
	work := func(j *app.Job) string {
		p := &j.Private
		return fmt.Sprint(j.ID, j.Name, j.Type, j.Version, string(j.Settings), sourceOf(j), j.Organization, j.Email, j.Batch, j.Priority,
			j.MaxRuntime, j.CreatedAt, j.Executor, j.IsBatch(), j.After, j.AfterAny, p.Sent, p.Meaning, string(p.Normalized), p.Definition,
			p.Batch, p.Row, p.Needs.CPUs, p.Needs.GPUs, p.Retries)
	}
	return work(a) == work(b)
}

// judgeNew checks a new job.
func (s *simulation) judgeNew(c *change, now *stored) error {
	r := s.requests[c.label]
	switch {
	case r == nil || r.submission == nil:
		return fmt.Errorf("no request submitted this job")
	case now.Status != app.Queued && !s.failsImmediately(c, now) || now.Attempts != 0 || now.Private.Claimed:
		return fmt.Errorf("a new job is %s", brief(&entry{stored: now}))
	case now.ID <= r.above:
		return fmt.Errorf("the ID of a new job is not above all earlier ones")
	case s.ledger.named(now.Organization, now.Name) != nil:
		return fmt.Errorf("there are two jobs with this name")
	}
	return s.judgeCreated(c, r, now)
}

// changes maps each verb that can change a job to its rule.
var changes = map[string]func(s *simulation, old *entry, now *stored) error{
	"claim":    judgeClaim,
	"handle":   judgeHandle,
	"started":  judgeStarted,
	"finished": judgeFinished,
	"inputs":   judgeInputs,
	"cancel":   judgeCancel,
	"retry":    judgeRetry,
	"return":   judgeReturn,
}

func judgeClaim(s *simulation, old *entry, now *stored) error {
	switch {
	case !old.waits() || now.Status != app.Queued || !now.Private.Claimed:
		return fmt.Errorf("a job that is not waiting is claimed")
	case now.Attempts != old.Attempts+1:
		return fmt.Errorf("attempt %d follows %d", now.Attempts, old.Attempts)
	case now.Private.Token == "" || s.ledger.tokens[now.Private.Token]:
		return fmt.Errorf("two attempts share a token")
	case len(now.Private.GPUs) != now.Private.Needs.GPUs:
		return fmt.Errorf("it needs %d devices, but gets %v", now.Private.Needs.GPUs, now.Private.GPUs)
	}
	return nil
}

func judgeHandle(_ *simulation, old *entry, now *stored) error {
	same := *now
	same.Private.Handle = old.Private.Handle
	return allow(old.Private.Claimed && now.shown == old.shown && fmt.Sprint(same.Private) == fmt.Sprint(old.Private),
		"more than the handle changes")
}

func judgeStarted(s *simulation, old *entry, now *stored) error {
	task := s.machine.find(old.Private.Token)
	switch {
	case old.Status != app.Queued || !old.Private.Claimed || now.Status != app.Running || !now.Private.Claimed:
		return fmt.Errorf("a job starts that was not claimed")
	case now.Attempts != old.Attempts || now.StartedAt.IsZero():
		return fmt.Errorf("it starts without an attempt or a time")
	case task == nil || time.Now().Before(task.begin):
		return fmt.Errorf("it is running, but its process has not started")
	case task.Needs != now.Private.Needs:
		return fmt.Errorf("it runs with %+v, but needs %+v", task.Needs, now.Private.Needs)
	}
	return nil
}

func judgeCancel(_ *simulation, old *entry, now *stored) error {
	switch {
	case old.Status.Finished():
		return fmt.Errorf("a finished job is cancelled")
	case old.Private.Claimed:
		return allow(now.Status == old.Status && now.Private.Claimed && now.Private.Stop && now.Attempts == old.Attempts,
			"a claimed job is not marked for stopping")
	}
	return allow(now.Status == app.Failed && now.Failure != nil && now.Failure.Code == app.FailedStopped && !now.Private.Stop,
		"a waiting job is not stopped immediately")
}

func judgeRetry(_ *simulation, old *entry, now *stored) error {
	return allow(old.Status == app.Failed && now.Status == app.Queued && !now.Private.Claimed && !now.Private.Stop &&
		now.Private.Lost == 0 && now.Attempts == old.Attempts && now.Failure == nil && now.Private.Token == "",
		"a retry does not reset the job")
}

// judgeParent checks a change of a batch's status.
func judgeParent(c *change, old *entry, now *stored) error {
	from, to := old.Status, now.Status
	switch {
	case now.Private.Claimed || now.Attempts != 0:
		return fmt.Errorf("a batch itself is claimed or has attempts")
	case from == to:
		return nil
	case from.Finished():
		return allow(to == app.Queued, "a finished batch changes") // the jobs of the batch are checked separately
	}
	return allow(from == app.Queued || to.Finished(), "a batch goes from running back to queued")
}

// judgeBatches recounts the jobs of the batches that have changed.
func (s *simulation) judgeBatches(c *change) {
	for _, j := range c.jobs {
		parent := s.ledger.jobs[j.id]
		if parent == nil || !parent.IsBatch() {
			continue
		}
		var counts app.Counts
		for _, row := range s.ledger.rows(j.id) {
			*counts.Of(row.Status)++
		}
		if counts != *parent.Counts {
			s.faultf("%s: %s has the counts %+v, but its rows are %+v", c.label, parent.Name, *parent.Counts, counts)
		}
		if err := s.batchStatus(c, parent, counts); err != nil {
			s.faultf("%s: %s: %v", c.label, parent.Name, err)
		}
	}
}

func (c *change) changesRowOf(batch app.JobID) bool {
	return slices.ContainsFunc(c.jobs, func(j *jobChange) bool { return j.now != nil && j.now.Private.Batch == batch })
}

// batchStatus checks the status of a batch against its jobs: it is running if any job is
// running, finished if all are finished, and completed if all are completed. Deleting or
// pinning one of its jobs does not change it.
func (s *simulation) batchStatus(c *change, parent *entry, counts app.Counts) error {
	over := counts.Queued+counts.Running == 0
	stays := map[string]bool{"delete": true, "pin": true, "unpin": true}[c.label.verb] || !c.changesRowOf(parent.ID)
	switch {
	case parent.Status.Finished() != over:
		return fmt.Errorf("it is %s, but its rows are %+v", parent.Status, counts)
	case counts.Running > 0 && parent.Status != app.Running:
		return fmt.Errorf("it is %s, but a row is running", parent.Status)
	case over && counts.Failed > 0 && parent.Status != app.Failed:
		return fmt.Errorf("it is %s, but a row failed", parent.Status)
	case over && counts.Failed == 0 && parent.Status != app.Completed && !stays:
		return fmt.Errorf("it is %s, but no row failed", parent.Status)
	}
	return nil
}
