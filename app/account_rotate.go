package app

import (
	"context"
	"time"

	"molrun/app/fault"
	"molrun/app/unit"
)

// RotateKey makes a key for the user of another one, which closes when the
// overlap is over, so that programs can change from one to the other without
// a pause. A key that would have expired by itself gets a successor that
// lives as long as it was meant to.
func (s *Service) RotateKey(ctx context.Context, id string, overlap time.Duration) (key string, rec *APIKey, err error) {
	defer s.keys.forget()
	key, newID, secret := newKey()
	err = s.store.Update(ctx, func(tx Tx) error {
		old, err := keyNamed(tx, id)
		if err != nil {
			return err
		}
		now := s.now()
		if !old.live(now) {
			return fault.Errorf(fault.Invalid, "key %s is disabled or expired; make a new one with `molrun key create`", id)
		}
		if old.Successor != "" {
			return fault.Errorf(fault.Invalid, "key %s was rotated before; rotate its successor %s", id, old.Successor)
		}
		old.Successor = newID
		rec = old.successor(newID, secretHash(secret), now)
		if end := now.Add(overlap); old.ExpiresAt.IsZero() || end.Before(old.ExpiresAt.Time) {
			old.ExpiresAt = unit.At(end)
		}
		if err := tx.PutKey(old); err != nil {
			return err
		}
		return tx.PutKey(rec)
	})
	return key, rec, err
}

// successor gives the record of a key that takes this one's place.
func (k *APIKey) successor(id, hash string, now time.Time) *APIKey {
	next := &APIKey{
		ID: id, Hash: hash, Organization: k.Organization, Email: k.Email, Role: k.Role, CreatedAt: unit.At(now),
	}
	if !k.ExpiresAt.IsZero() {
		next.ExpiresAt = unit.At(now.Add(k.ExpiresAt.Sub(k.CreatedAt.Time)))
	}
	return next
}
