package access

import (
	"context"
	"errors"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
)

// useInterval is the pause between two writes of last uses: a request must not
// cost a write.
const useInterval = time.Minute

// RecordKeyUses writes the last uses of keys once a minute, all in one commit,
// until ctx ends. Errors go to failed, and the write is retried. Call
// SaveKeyUses after the last request.
func (s *Accounts) RecordKeyUses(ctx context.Context, failed func(error)) {
	ticker := time.NewTicker(useInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := s.SaveKeyUses(ctx); err != nil && ctx.Err() == nil {
				failed(err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// SaveKeyUses writes the last uses of keys now.
func (s *Accounts) SaveKeyUses(ctx context.Context) error {
	last := s.uses.Take()
	if len(last) == 0 {
		return nil
	}
	err := s.store.Update(ctx, func(tx app.Tx) error {
		for id, at := range last {
			if err := putUse(tx, id, at); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.uses.Restore(last)
	}
	return err
}

// putUse changes only the time: the key may have been disabled or deleted since
// it was used.
func putUse(tx app.Tx, id string, at time.Time) error {
	if name, found := strings.CutPrefix(id, sessionUse); found {
		return putSessionUse(tx, name, at)
	}
	if name, found := strings.CutPrefix(id, signedIn); found {
		return putSignIn(tx, name, at)
	}
	k, err := tx.Key(id)
	switch {
	case errors.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	case !at.After(k.LastUsedAt.Time):
		return nil
	}
	k.LastUsedAt = unit.At(at)
	return tx.PutKey(k)
}

// putSignIn is putUse of a user.
func putSignIn(tx app.Tx, name string, at time.Time) error {
	organization, email, _ := strings.Cut(name, "/")
	u, err := userOf(tx, organization, email)
	if err != nil || u == nil || !at.After(u.LastUsedAt.Time) {
		return err
	}
	u.LastUsedAt = unit.At(at)
	return tx.PutUser(u)
}

// putSessionUse is putUse of a session.
func putSessionUse(tx app.Tx, name string, at time.Time) error {
	hash, holder, _ := strings.Cut(name, "/")
	one, err := tx.Session(holder, hash)
	switch {
	case errors.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	case !at.After(one.LastUsedAt.Time):
		return nil
	}
	one.LastUsedAt = unit.At(at)
	return tx.PutSession(one)
}
