package app

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"molrun/app/fault"
	"molrun/app/unit"
)

// A job that waits for others is not in the queue. When one of them finishes, it is
// marked as unsettled in the same transaction, which then settles: it tells the
// dependants, which enter the queue or fail in turn. A job may have ten thousand
// dependants, so each transaction tells some and the next continues, also after a
// restart, until the mark is gone. The same happens when a failed job is tried again.

// settleStep is how many dependants one transaction tells by default.
const settleStep = 100

// Settle tells some of the dependants that are still to be told, and wakes the runner
// if any were.
func (s *Runs) Settle(ctx context.Context) error {
	none := false
	err := s.store.View(ctx, func(tx Tx) error {
		_, err := tx.Unsettled()
		none = errors.Is(err, fault.NotFound)
		return nil
	})
	if err != nil || none {
		return err
	}
	var told []JobID
	err = s.store.Update(ctx, func(tx Tx) (err error) {
		told, err = s.settle(tx)
		return err
	})
	if err == nil {
		s.changes.notify(told...)
		s.wakeRunner()
	}
	return err
}

// settle tells some dependants, and returns them with their batches.
func (c *core) settle(tx Tx) (told []JobID, err error) {
	for left := cmp.Or(c.options.SettleStep, settleStep); left > 0; {
		id, err := tx.Unsettled()
		if errors.Is(err, fault.NotFound) {
			return told, nil
		}
		if err != nil {
			return nil, err
		}
		d, err := tx.Job(id)
		if err != nil {
			return nil, err
		}
		for _, how := range d.Tells() {
			for id, err := range tx.Dependants(d.ID, how) {
				if err != nil {
					return nil, err
				}
				if left--; left < 0 {
					return told, nil
				}
				batch, err := c.tell(tx, id, d)
				if err != nil {
					return nil, err
				}
				told = append(told, id, batch)
			}
		}
		if left > 0 {
			d.Private.Unsettled = false
			if err := tx.PutJob(d); err != nil {
				return nil, err
			}
		}
	}
	return told, nil
}

// tell tells a dependant what has become of d. It returns the dependant's batch if that
// changed too.
func (c *core) tell(tx Tx, id JobID, d *Job) (batch JobID, err error) {
	j, err := tx.Job(id)
	if err != nil {
		return "", err
	}
	if j.Status == Failed {
		return c.reopen(tx, j)
	}
	i := slices.IndexFunc(j.Private.Waits, func(w Dependency) bool { return w.Job == d.ID })
	if i < 0 {
		return "", fault.Errorf(fault.Internal, "job %s is told about %s, for which it does not wait", j.ID, d.ID)
	}
	if w := j.Private.Waits[i]; d.dooms(w.Any) {
		j.fall(w, unit.At(c.now()))
	} else {
		j.setWaits(slices.Delete(j.Private.Waits, i, i+1))
	}
	return putChanged(tx, j, Queued)
}

// reopen queues a job again that failed because another one did, unless there is a
// further one because of which it has to stay failed.
func (c *core) reopen(tx Tx, j *Job) (batch JobID, err error) {
	waits, doom, err := remaining(tx, j, "")
	switch {
	case err != nil:
		return "", err
	case doom != nil:
		j.fall(*doom, j.CompletedAt)
		return "", tx.PutJob(j)
	}
	return c.requeue(tx, j, waits)
}

// remaining returns what a failed job still has to wait for, and a job because of which
// it can't start: one that has failed, or is gone. A failed row of the batch that is tried
// again as a whole is waited for.
func remaining(tx Tx, j *Job, batch JobID) (waits []Dependency, doom *Dependency, err error) {
	for _, w := range j.Private.Waits {
		d, err := tx.Job(w.Job)
		switch {
		case errors.Is(err, fault.NotFound), err == nil && d.dooms(w.Any) && (batch == "" || d.Private.Batch != batch):
			return nil, &w, nil
		case err != nil:
			return nil, nil, err
		case !d.satisfies(w.Any):
			waits = append(waits, w)
		}
	}
	return waits, nil, nil
}

// requeue resets a failed job as if it had just been submitted, except for its
// attempts.
func (c *core) requeue(tx Tx, j *Job, waits []Dependency) (batch JobID, err error) {
	from := j.Status
	j.Status = Queued
	j.StartedAt, j.CompletedAt = unit.Time{}, unit.Time{}
	j.Failure, j.Metrics, j.ResultBytes, j.Isolation = nil, nil, nil, ""
	j.release()
	j.setWaits(waits)
	p := &j.Private
	p.QueuedAt, p.Lost, p.Cause, p.Spares = unit.At(c.now()), 0, "", false
	return putChanged(tx, j, from)
}

// unsettle marks a job that has finished, or is tried again, if others depend on it.
func unsettle(tx Tx, j *Job, from Status) error {
	if from.Finished() == j.Status.Finished() {
		return nil
	}
	for _, how := range j.Tells() {
		for _, err := range tx.Dependants(j.ID, how) {
			j.Private.Unsettled = err == nil
			return err
		}
	}
	return nil
}

// MaxFalling is how many jobs are counted that fail with another one.
const MaxFalling = 10_000

// countFalling counts the jobs that fail if a job, or all rows of a batch, do: those that
// wait for it, for these, and so on, up to MaxFalling.
func countFalling(tx Tx, j *Job) (int, error) {
	next := []JobID{j.ID}
	seen := map[JobID]bool{j.ID: true}
	if batch := j.Private.Batch; batch != "" { // fails with its row
		next, seen[batch] = append(next, batch), true
	}
	if j.IsBatch() {
		for row, err := range tx.Subjobs(j.ID, "") {
			if err != nil {
				return 0, err
			}
			next, seen[row.ID] = append(next, row.ID), true
		}
	}
	falling := 0
	for ; len(next) > 0; next = next[1:] {
		for id, err := range tx.Dependants(next[0], WaitsForSuccess) {
			if err != nil {
				return 0, err
			}
			if seen[id] {
				continue
			}
			if falling++; falling == MaxFalling {
				return falling, nil
			}
			row, err := tx.Job(id)
			if err != nil {
				return 0, err
			}
			next, seen[id] = append(next, id), true
			if batch := row.Private.Batch; batch != "" && !seen[batch] {
				next, seen[batch] = append(next, batch), true
			}
		}
	}
	return falling, nil
}
