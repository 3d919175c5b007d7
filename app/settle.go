package app

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"molrun/app/base/fault"
	"molrun/app/base/unit"
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
		if none = errors.Is(err, fault.NotFound); none {
			return nil
		}
		return err
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
		s.changes.Notify(told...)
		s.wakeRunner()
	}
	return err
}

// settle tells some dependants, and returns them with their batches.
func (c *core) settle(tx Tx) (told []JobID, err error) {
	for left := cmp.Or(c.options.SettleStep, settleStep); left > 0; {
		d, err := nextUnsettled(tx)
		if errors.Is(err, fault.NotFound) {
			return told, nil
		}
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

// nextUnsettled returns a job whose dependants are to be told next. If it fell with a job
// that still has to tell so, that one comes first: it may reopen this one.
func nextUnsettled(tx Tx) (*Job, error) {
	id, err := tx.Unsettled()
	if err != nil {
		return nil, err
	}
	d, err := tx.Job(id)
	for err == nil && d.Status == Failed && d.Private.Cause != "" {
		cause, missing := tx.Job(d.Private.Cause)
		if errors.Is(missing, fault.NotFound) || missing == nil && !cause.Private.Unsettled {
			break
		}
		d, err = cause, missing
	}
	return d, err
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
		return "", fault.Errorf(fault.Internal, "job %s does not depend on %s", j.ID, d.ID)
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
	waits, doom, err := remaining(tx, j, nil)
	switch {
	case err != nil:
		return "", err
	case doom != nil:
		j.fall(*doom, j.CompletedAt)
		return "", tx.PutJob(j)
	}
	return c.requeue(tx, j, waits, nil)
}

// remaining returns what a failed job still has to wait for, and a job because of which
// it can't start: one that has failed, or is gone. A failed row of the batch that is tried
// again as a whole is waited for, and so is a job that fell with another one: it may be
// about to be reopened, and else says that it is not.
func remaining(tx Tx, j, batch *Job) (waits []Dependency, doom *Dependency, err error) {
	for _, w := range j.Private.Waits {
		d, err := tx.Job(w.Job)
		if errors.Is(err, fault.NotFound) {
			return nil, &w, nil
		}
		if err != nil {
			return nil, nil, err
		}
		again := d.Status == Failed && batch != nil && d.Private.Batch == batch.ID
		switch {
		case again:
		case d.dooms(w.Any):
			return nil, &w, nil
		case d.Status == Failed && d.Private.Cause != "":
			d.Private.Unsettled = true
			if err := tx.PutJob(d); err != nil {
				return nil, nil, err
			}
		case d.satisfies(w.Any):
			continue
		}
		waits = append(waits, w)
	}
	return waits, nil, nil
}

// requeue resets a failed job as if it had just been submitted, except for its
// attempts. The batch of which it is a row is stored by the caller, unless it is nil.
func (c *core) requeue(tx Tx, j *Job, waits []Dependency, batch *Job) (changed JobID, err error) {
	from := j.Status
	j.Status = Queued
	j.StartedAt, j.CompletedAt = unit.Time{}, unit.Time{}
	j.Failure, j.ResultBytes = nil, nil
	j.forgetAttempt()
	j.release()
	j.setWaits(waits)
	p := &j.Private
	p.QueuedAt, p.Lost, p.Cause, p.Spares = unit.At(c.now()), 0, "", false
	return putCounted(tx, j, from, batch)
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
