package faults

import (
	"fmt"

	"molrun/app/client"
)

// readJob reads a random job.
func (w *loadClient) readJob() error {
	fact, ok := w.ledger.job(w.rand, func(f jobFact) bool { return f.id != "" && !f.deleting })
	if !ok {
		return nil
	}
	return w.compareJob(fact)
}

func (w *loadClient) compareJob(fact jobFact) error {
	job, err := w.client.Job(w.ctx, fact.submission.Name)
	if err != nil {
		return w.unlessDeleted(fact, err)
	}
	w.ledger.note(func() { w.ledger.saw(fact, job) })
	return nil
}

// saw records the status of a finished job, which must not change unless a client retries
// the job. before is the fact at the time of the request: if two requests overlap, the
// response that was sent first might be read last. The caller has locked the ledger.
func (l *ledger) saw(before jobFact, job *client.Job) {
	fact := l.jobs[job.Name]
	if before.retrying || fact.retrying || before.retried != fact.retried || fact.deleting {
		return // the response might be outdated
	}
	contradicts := before.final != "" && before.final != job.Status
	if job.Finished() {
		contradicts = contradicts || fact.final != "" && fact.final != job.Status
		fact.final = job.Status
	}
	if contradicts {
		l.faults = append(l.faults, fmt.Sprintf("job %s was %s and is now %s", job.Name, before.final, job.Status))
	}
}

// cancel cancels a job that is not known to be finished.
func (w *loadClient) cancel() error {
	fact, ok := w.ledger.job(w.rand, func(f jobFact) bool {
		return f.id != "" && f.final == "" && f.rows == nil && !f.cancelling && !f.retrying && !f.deleting && !f.kept
	})
	if !ok {
		return nil
	}
	name := fact.submission.Name
	w.ledger.note(func() { w.ledger.jobs[name].cancelling = true })
	job, err := w.client.Cancel(w.ctx, name)
	if err != nil {
		return w.unlessDeleted(fact, err)
	}
	w.ledger.acknowledge(func() {
		w.ledger.saw(fact, job)
		if now := w.ledger.jobs[name]; !job.Finished() && !now.retrying && now.retried == fact.retried {
			now.stopping, now.attempts = true, job.Attempts
		}
	})
	return nil
}

// retry retries a failed job, at most once.
func (w *loadClient) retry() error {
	retriable := func(f jobFact) bool {
		return f.final == "FAILED" && f.rows == nil && !f.isRow && !f.retried && !f.deleting
	}
	fact, ok := w.ledger.job(w.rand, retriable)
	if !ok {
		return nil
	}
	name, mine := fact.submission.Name, false
	w.ledger.note(func() {
		if now := w.ledger.jobs[name]; retriable(*now) {
			now.final, now.retrying, mine = "", true, true
		}
	})
	if !mine {
		return nil
	}
	job, err := w.client.Retry(w.ctx, name)
	if err != nil {
		return err // the next comparison determines whether the retry took effect
	}
	w.ledger.acknowledge(func() {
		now := w.ledger.jobs[name]
		now.retrying, now.retried, now.cancelling, now.stopping = false, true, false, false
		now.attempts = job.Attempts
	})
	return nil
}

// pin exempts a job from retention. No client unpins it.
func (w *loadClient) pin() error {
	fact, ok := w.ledger.job(w.rand, func(f jobFact) bool { return f.id != "" && !f.pinned && !f.deleting })
	if !ok {
		return nil
	}
	name := fact.submission.Name
	if _, err := w.client.Pin(w.ctx, name); err != nil {
		return w.unlessDeleted(fact, err)
	}
	w.ledger.acknowledge(func() { w.ledger.jobs[name].pinned = true })
	return nil
}

// remove deletes a finished job.
func (w *loadClient) remove() error {
	removable := func(f jobFact) bool {
		return f.final != "" && f.rows == nil && !f.isRow && !f.deleting && f.reserved == 0 && !f.kept
	}
	fact, ok := w.ledger.job(w.rand, removable)
	if !ok {
		return nil
	}
	name, mine := fact.submission.Name, false
	w.ledger.note(func() {
		if now := w.ledger.jobs[name]; removable(*now) {
			now.deleting, mine = true, true
		}
	})
	if !mine {
		return nil // another client deleted it first
	}
	if err := w.client.Delete(w.ctx, name); err != nil {
		return err
	}
	w.ledger.acknowledge(func() { w.ledger.jobs[name].deleted = true })
	return nil
}

// unlessDeleted returns err, or nil if err is NOT_FOUND and a client has requested the
// job's deletion since fact was read.
func (w *loadClient) unlessDeleted(fact jobFact, err error) error {
	deleting := false
	w.ledger.note(func() { deleting = w.ledger.jobs[fact.submission.Name].deleting })
	if deleting {
		return except(err, "NOT_FOUND")
	}
	return err
}
