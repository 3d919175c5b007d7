package app

import (
	"fmt"

	"molrun/app/base/unit"
)

// putChanged stores a job whose previous status was from, and updates the counts and
// status of its batch. It returns the batch's ID if the batch changed. The caller must
// propagate after the transaction.
func putChanged(tx Tx, j *Job, from Status) (batch JobID, err error) {
	return putCounted(tx, j, from, nil)
}

// putCounted is putChanged for a row whose batch the caller stores; a nil batch is loaded
// and stored here.
func putCounted(tx Tx, j *Job, from Status, batch *Job) (changed JobID, err error) {
	if err := markUnpropagated(tx, j, from); err != nil {
		return "", err
	}
	if err := tx.PutJob(j); err != nil || j.Private.Batch == "" || from == j.Status {
		return "", err
	}
	if batch != nil {
		batch.count(j, from)
		return batch.ID, nil
	}
	parent, err := tx.Job(j.Private.Batch)
	if err != nil {
		return "", fmt.Errorf("batch of %s: %w", j.ID, err)
	}
	before := parent.Status
	parent.count(j, from)
	if err := markUnpropagated(tx, parent, before); err != nil {
		return "", err
	}
	return parent.ID, tx.PutJob(parent)
}

// count moves a subjob from its previous status to its current one. For a short subjob,
// the end can be the first event that is reported.
func (parent *Job) count(j *Job, from Status) {
	*parent.Counts.Of(from)--
	*parent.Counts.Of(j.Status)++
	if !j.StartedAt.IsZero() && (parent.StartedAt.IsZero() || j.StartedAt.Before(parent.StartedAt.Time)) {
		parent.StartedAt = j.StartedAt
	}
	if parent.Private.LastEnd.Before(j.CompletedAt.Time) {
		parent.Private.LastEnd = j.CompletedAt
	}
	switch {
	case parent.Status == Queued && !j.StartedAt.IsZero():
		parent.Status = Running
	case j.Status == Queued && parent.Status.Finished(): // a retry
		parent.Status, parent.StatusReason, parent.CompletedAt = Queued, "", unit.Time{}
		parent.Private.KeepsDependants = false
	}
	if j.Status == Completed && j.ResultBytes != nil {
		total := *j.ResultBytes
		if parent.ResultBytes != nil {
			total += *parent.ResultBytes
		}
		parent.ResultBytes = &total
	}
	parent.conclude()
}

// conclude finishes a batch once all its rows have finished.
func (parent *Job) conclude() {
	c := parent.Counts
	if c.Queued+c.Running > 0 {
		return
	}
	parent.Status, parent.StatusReason = Completed, ""
	if c.Failed > 0 {
		parent.Status, parent.StatusReason = Failed, c.reason()
	}
	if parent.CompletedAt.Before(parent.Private.LastEnd.Time) {
		parent.CompletedAt = parent.Private.LastEnd
	}
}

// reason returns the statusReason of a failed batch.
func (c *Counts) reason() string {
	if c.Failed == 0 {
		return "the jobs that failed were deleted"
	}
	return fmt.Sprintf("%d of %d jobs failed", c.Failed, c.Total())
}

// subtract subtracts a finished subjob from the counts before it is deleted. The status is
// kept: deleting failed rows does not complete a batch.
func (parent *Job) subtract(row *Job) {
	*parent.Counts.Of(row.Status)--
	if row.ResultBytes != nil && parent.ResultBytes != nil {
		rest := *parent.ResultBytes - *row.ResultBytes
		parent.ResultBytes = &rest
	}
	if parent.Status == Failed {
		parent.StatusReason = parent.Counts.reason()
	}
}
