package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"molrun/app/base/fault"
)

// A batch can have ten thousand rows, and a transaction that changed them all would block
// other submissions for seconds. So the pending change is stored with the batch, and each
// transaction changes some of the rows. The request itself changes the first ones;
// ChangeRows changes the rest, even after a restart.

// rowsStep is the default number of rows of a batch changed in one transaction.
const rowsStep = 50

// PendingChange is the change in progress to the rows of a batch: stopping or retrying
// them.
type PendingChange struct {
	Retry           bool   `json:"retry,omitempty"`  // retry failed rows; otherwise stop all rows
	By              string `json:"by"`               // e-mail of the user who requested it
	KeepsDependants bool   `json:"spares,omitempty"` // dependents of stopped rows keep waiting
	After           []byte `json:"after,omitempty"`  // Position from which to continue
	Left            int    `json:"left,omitempty"`   // number of rows that can still enter the queue
}

func (a *PendingChange) statuses() []Status {
	if a.Retry {
		return []Status{Failed}
	}
	return []Status{Queued, Running}
}

// isStopping reports whether all rows of a batch are being stopped.
func (j *Job) isStopping() bool { return j.Private.Pending != nil && !j.Private.Pending.Retry }

// rowsChanged describes what one transaction changed in the rows of a batch.
type rowsChanged struct {
	rows       []JobID
	retried    int
	retryError error // why a row could not be retried
}

// changeRows applies the pending change to some rows of a batch and stores the batch.
func (c *core) changeRows(tx Tx, batch *Job) (did rowsChanged, err error) {
	a, before := *batch.Private.Pending, batch.Status
	ids, next, err := tx.JobIDs(JobFilter{Organization: batch.Organization, Batch: batch.ID, Statuses: a.statuses(), Ascending: true}, Position(a.After), cmp.Or(c.options.BatchStep, rowsStep))
	if err != nil {
		return did, err
	}
	for _, id := range ids {
		row, err := tx.Job(id)
		if err != nil {
			return did, err
		}
		err = c.changeRow(tx, batch, row, a)
		switch {
		case errors.Is(err, fault.DependencyFailed) || errors.Is(err, fault.InputRemoved):
			did.retryError = err
		case err != nil:
			return did, err
		default:
			did.retried++
		}
	}
	did.rows = ids
	a.After, a.Left = []byte(next), max(0, a.Left-len(ids))
	batch.setPending(&a, next != "")
	if err := markUnpropagated(tx, batch, before); err != nil {
		return did, err
	}
	return did, tx.PutJob(batch)
}

// setPending stores the pending change of a batch, or clears it if no rows remain.
func (j *Job) setPending(a *PendingChange, left bool) {
	stopping := j.isStopping()
	if j.Private.Pending = nil; left {
		j.Private.Pending = a
	}
	switch {
	case j.Status.Finished():
	case j.isStopping():
		j.StatusReason = beingStopped
	case stopping:
		j.StatusReason = ""
	}
}

// beingStopped is the statusReason of a canceled job that has not finished yet.
const beingStopped = "being stopped"

func (c *core) changeRow(tx Tx, batch, row *Job, a PendingChange) error {
	if a.Retry {
		return c.retry(tx, row, batch)
	}
	return c.stop(tx, row, a, batch)
}

// ChangeRows applies the pending changes of batches until ctx ends. It sleeps as long as
// it works, leaving other users of the store at least half its capacity.
func (s *Runs) ChangeRows(ctx context.Context, failed func(error)) error {
	for ctx.Err() == nil {
		begin := time.Now()
		more, err := s.ChangeSomeRows(ctx)
		rest := time.Since(begin)
		var wake chan struct{}
		switch {
		case err != nil && ctx.Err() == nil:
			failed(err)
			rest = time.Second
		case !more:
			rest, wake = time.Hour, s.wakeChanges
		}
		select {
		case <-ctx.Done():
		case <-wake:
		case <-time.After(rest):
		}
	}
	return ctx.Err()
}

// ChangeSomeRows applies part of the pending change of a batch, and reports whether more
// might remain.
func (s *Runs) ChangeSomeRows(ctx context.Context) (more bool, err error) {
	id, err := s.nextPendingBatch(ctx)
	if err != nil || id == "" {
		return false, err
	}
	var changed []JobID
	err = s.store.Update(ctx, func(tx Tx) error {
		changed = nil
		batch, err := tx.Job(id)
		if errors.Is(err, fault.NotFound) || err == nil && batch.Private.Pending == nil {
			return nil
		}
		if err != nil {
			return err
		}
		did, err := s.changeRows(tx, batch)
		if err != nil {
			return err
		}
		changedIDs, err := s.propagateSome(tx)
		changed = append(append(changedIDs, did.rows...), id)
		return err
	})
	if err != nil {
		return true, fmt.Errorf("change the rows of batch %s: %w", id, err)
	}
	s.changes.Notify(changed...)
	s.wakeRunner()
	return true, nil
}

// nextPendingBatch returns the oldest batch with a pending change, or "" if there is none.
func (s *Runs) nextPendingBatch(ctx context.Context) (id JobID, err error) {
	err = s.store.View(ctx, func(tx Tx) error {
		for first, err := range tx.PendingBatches() {
			id = first
			return err
		}
		return nil
	})
	return id, err
}

// wakeRows makes ChangeRows look for work.
func (c *core) wakeRows() { wake(c.wakeChanges) }

// pendingRows counts the rows of a quota holder's batches that have yet to enter the
// queue.
func pendingRows(tx Tx, organization, user string) (n int, err error) {
	for id, err := range tx.PendingBatches() {
		if err != nil {
			return 0, err
		}
		batch, err := tx.Job(id)
		if err != nil {
			return 0, err
		}
		if batch.Organization == organization && (user == "" || batch.Email == user) {
			n += batch.Private.Pending.Left
		}
	}
	return n, nil
}
