package listing

import (
	"context"

	"molrun/app"
)

// Falling counts the jobs that fail if a job is cancelled: those that wait for it, for
// these, and so on, up to MaxFalling.
func (s *Lists) Falling(ctx context.Context, by app.Caller, name string) (n int, err error) {
	err = s.store.View(ctx, func(tx app.Tx) error {
		j, err := s.jobs.Find(tx, by, name)
		if err == nil && !j.Status.Finished() {
			n, err = countFalling(tx, j)
		}
		return err
	})
	return n, err
}

// MaxFalling is how many jobs are counted that fail with another one.
const MaxFalling = 10_000

// countFalling counts the jobs that fail if a job, or all rows of a batch, do: those that
// wait for it, for these, and so on, up to MaxFalling.
func countFalling(tx app.Tx, j *app.Job) (int, error) {
	next := []app.JobID{j.ID}
	seen := map[app.JobID]bool{j.ID: true}
	if batch := j.Private.Batch; batch != "" { // fails with its row
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
	falling := 0
	for ; len(next) > 0; next = next[1:] {
		for id, err := range tx.Dependants(next[0], app.WaitsForSuccess) {
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
