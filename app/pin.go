package app

import (
	"context"

	"molrun/app/unit"
)

// Pin keeps a job, or a batch with all its rows, from retention and prune. Who
// may delete it by hand still may. To repeat it is harmless.
func (s *Service) Pin(ctx context.Context, by Caller, name string) (Record, error) {
	return s.change(ctx, by, name, func(tx Tx, j *Job) error {
		if j.Pinned {
			return nil // whoever pinned it first stays on record
		}
		j.Pinned, j.Private.PinnedBy, j.Private.PinnedAt = true, by.Email, unit.At(s.now())
		return tx.PutJob(j)
	})
}

// Unpin gives a job up to retention and prune again.
func (s *Service) Unpin(ctx context.Context, by Caller, name string) (Record, error) {
	return s.change(ctx, by, name, func(tx Tx, j *Job) error {
		if !j.Pinned {
			return nil
		}
		j.Pinned, j.Private.PinnedBy, j.Private.PinnedAt = false, "", unit.Time{}
		return tx.PutJob(j)
	})
}
