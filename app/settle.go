package app

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"molrun/app/base/fault"
	"molrun/app/base/unit"
)

// A job that waits for others is not in the queue. When one of them finishes, the same
// transaction marks it as unpropagated and starts to propagate its status: its dependents
// enter the queue or fail in turn. A job can have ten thousand dependents, so each
// transaction handles some and the next one continues, also after a restart, until the
// mark is cleared. The same happens when a failed job is retried.

// propagationStep is the default number of dependents handled in one transaction.
const propagationStep = 100

// Propagate propagates pending statuses to some dependents, and wakes the runner if any
// were pending.
func (s *Runs) Propagate(ctx context.Context) error {
	none := false
	err := s.store.View(ctx, func(tx Tx) error {
		_, err := tx.Unpropagated()
		if none = errors.Is(err, fault.NotFound); none {
			return nil
		}
		return err
	})
	if err != nil || none {
		return err
	}
	var changed []JobID
	err = s.store.Update(ctx, func(tx Tx) (err error) {
		changed, err = s.propagateSome(tx)
		return err
	})
	if err == nil {
		s.changes.Notify(changed...)
		s.wakeRunner()
	}
	return err
}

// propagateSome propagates pending statuses to some dependents. It returns those
// dependents and their batches.
func (c *core) propagateSome(tx Tx) (changed []JobID, err error) {
	for left := cmp.Or(c.options.PropagationStep, propagationStep); left > 0; {
		d, err := nextUnpropagated(tx)
		if errors.Is(err, fault.NotFound) {
			return changed, nil
		}
		if err != nil {
			return nil, err
		}
		for _, how := range d.AffectedDependants() {
			for id, err := range tx.Dependants(d.ID, how) {
				if err != nil {
					return nil, err
				}
				if left--; left < 0 {
					return changed, nil
				}
				batch, err := c.notifyDependant(tx, id, d)
				if err != nil {
					return nil, err
				}
				changed = append(changed, id, batch)
			}
		}
		if left > 0 {
			d.Private.Unpropagated = false
			if err := tx.PutJob(d); err != nil {
				return nil, err
			}
		}
	}
	return changed, nil
}

// nextUnpropagated returns the job whose status is propagated next. If it failed with
// another job whose status is also pending, that one comes first because it might reopen
// this one.
func nextUnpropagated(tx Tx) (*Job, error) {
	id, err := tx.Unpropagated()
	if err != nil {
		return nil, err
	}
	d, err := tx.Job(id)
	for err == nil && d.Status == Failed && d.Private.Cause != "" {
		cause, missing := tx.Job(d.Private.Cause)
		if errors.Is(missing, fault.NotFound) || missing == nil && !cause.Private.Unpropagated {
			break
		}
		d, err = cause, missing
	}
	return d, err
}

// notifyDependant applies the status of d to a dependent. It returns the dependent's
// batch if that changed too.
func (c *core) notifyDependant(tx Tx, id JobID, d *Job) (batch JobID, err error) {
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
	if w := j.Private.Waits[i]; d.blocksForever(w.Any) {
		j.failDependency(w, unit.At(c.now()))
	} else {
		j.setWaits(slices.Delete(j.Private.Waits, i, i+1))
	}
	return putChanged(tx, j, Queued)
}

// reopen requeues a job that failed because of another job, unless a further dependency
// prevents it from starting.
func (c *core) reopen(tx Tx, j *Job) (batch JobID, err error) {
	waits, blocking, err := remaining(tx, j, nil)
	switch {
	case err != nil:
		return "", err
	case blocking != nil:
		j.failDependency(*blocking, j.CompletedAt)
		return "", tx.PutJob(j)
	}
	return c.requeue(tx, j, waits, nil)
}

// remaining returns the dependencies that a failed job still has to wait for, and a
// dependency that has failed or was deleted and thus prevents it from starting. It counts
// a failed row among the former while the row's batch is being retried. It does the same
// for a job that failed because of another one: that job either reopens, or propagates
// that it stays failed.
func remaining(tx Tx, j, batch *Job) (waits []Dependency, blocking *Dependency, err error) {
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
		case d.blocksForever(w.Any):
			return nil, &w, nil
		case d.Status == Failed && d.Private.Cause != "":
			d.Private.Unpropagated = true
			if err := tx.PutJob(d); err != nil {
				return nil, nil, err
			}
		case d.satisfiesDependency(w.Any):
			continue
		}
		waits = append(waits, w)
	}
	return waits, nil, nil
}

// requeue resets a failed job as if it had just been submitted, except for its number of
// attempts and any memory added after it ran out. If batch is not nil, the job is one of
// its rows, and the caller stores the batch.
func (c *core) requeue(tx Tx, j *Job, waits []Dependency, batch *Job) (changed JobID, err error) {
	from := j.Status
	j.Status = Queued
	j.StartedAt, j.CompletedAt = unit.Time{}, unit.Time{}
	j.Failure, j.ResultBytes, j.PastAttempts = nil, nil, nil
	j.forgetAttempt()
	j.release()
	j.setWaits(waits)
	p := &j.Private
	p.QueuedAt, p.Lost, p.Cause, p.KeepsDependants = unit.At(c.now()), 0, "", false
	return putCounted(tx, j, from, batch)
}

// markUnpropagated marks a job that has finished, or is retried, if others depend on it.
func markUnpropagated(tx Tx, j *Job, from Status) error {
	if from.Finished() == j.Status.Finished() {
		return nil
	}
	for _, how := range j.AffectedDependants() {
		for _, err := range tx.Dependants(j.ID, how) {
			j.Private.Unpropagated = err == nil
			return err
		}
	}
	return nil
}
