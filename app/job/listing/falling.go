package listing

import (
	"context"

	"molrun/app"
)

// FailingDependants counts the jobs that would fail if a job were canceled: its direct
// and indirect dependents, up to MaxFailingDependants.
func (s *Lists) FailingDependants(ctx context.Context, by app.Caller, name string) (n int, err error) {
	err = s.store.View(ctx, func(tx app.Tx) error {
		j, err := s.jobs.FindJob(tx, by, name)
		if err == nil && !j.Status.Finished() {
			n, err = countFailingDependants(tx, j)
		}
		return err
	})
	return n, err
}

// MaxFailingDependants is the maximum that FailingDependants counts.
const MaxFailingDependants = 10_000

// countFailingDependants counts the jobs that would fail if a job, or all rows of a
// batch, failed: direct and indirect dependents, up to MaxFailingDependants.
func countFailingDependants(tx app.Tx, j *app.Job) (int, error) {
	next := []app.JobID{j.ID}
	seen := map[app.JobID]bool{j.ID: true}
	if batch := j.Private.Batch; batch != "" { // the batch fails with its row
		next, seen[batch] = append(next, batch), true
	}
	if j.IsBatch() {
		rows, _, err := tx.JobIDs(app.JobFilter{Organization: j.Organization, Batch: j.ID}, "", app.MaxBatchRows)
		if err != nil {
			return 0, err
		}
		for _, id := range rows {
			next, seen[id] = append(next, id), true
		}
	}
	failing := 0
	for ; len(next) > 0; next = next[1:] {
		for id, err := range tx.Dependants(next[0], app.WaitsForSuccess) {
			if err != nil {
				return 0, err
			}
			if seen[id] {
				continue
			}
			if failing++; failing == MaxFailingDependants {
				return failing, nil
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
	return failing, nil
}
