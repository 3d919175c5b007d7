package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"molrun/app/fault"
	"molrun/app/unit"
)

// useInterval is how far apart two writes of a key's last use are: requests
// must not cost a write each.
const useInterval = time.Minute

// keyUses remembers when keys were used last until that is written.
type keyUses struct {
	mu   sync.Mutex
	last map[string]time.Time // by id; keys that exist, so there are not many
}

func (u *keyUses) note(id string, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last == nil {
		u.last = map[string]time.Time{}
	}
	u.last[id] = at
}

// take gives what was noted and forgets it.
func (u *keyUses) take() map[string]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	last := u.last
	u.last = nil
	return last
}

// giveBack notes again what could not be written, unless there is newer.
func (u *keyUses) giveBack(last map[string]time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last == nil {
		u.last = map[string]time.Time{}
	}
	for id, at := range last {
		if at.After(u.last[id]) {
			u.last[id] = at
		}
	}
}

// RecordKeyUses writes once a minute, all at once, when keys were used last,
// until ctx ends. Errors go to failed; what was not written is tried again.
// Call SaveKeyUses when no more requests come.
func (s *Service) RecordKeyUses(ctx context.Context, failed func(error)) {
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

// SaveKeyUses writes now when keys were used last.
func (s *Service) SaveKeyUses(ctx context.Context) error {
	last := s.uses.take()
	if len(last) == 0 {
		return nil
	}
	err := s.store.Update(ctx, func(tx Tx) error {
		for id, at := range last {
			if err := putUse(tx, id, at); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.uses.giveBack(last)
	}
	return err
}

// putUse changes nothing but the time: the key may have been disabled or
// deleted since it was used.
func putUse(tx Tx, id string, at time.Time) error {
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
