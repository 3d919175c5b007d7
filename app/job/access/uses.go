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

// useInterval is the time between writes of last uses, so that requests need not write.
const useInterval = time.Minute

// RecordKeyUses writes the last uses of keys once a minute, all in one commit, until ctx
// ends. If that fails, it passes the error to failed and retries. The caller must call
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

// putUse updates only the time, since the key might have been changed or deleted after
// its use.
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

// putSignIn is putUse for a user without a key.
func putSignIn(tx app.Tx, name string, at time.Time) error {
	organization, email, _ := strings.Cut(name, "/")
	u, err := userOf(tx, organization, email)
	if err != nil || u == nil || !at.After(u.LastUsedAt.Time) {
		return err
	}
	u.LastUsedAt = unit.At(at)
	return tx.PutUser(u)
}

// putSessionUse is putUse for a session.
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
