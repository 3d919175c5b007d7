// Package access issues API keys and authenticates callers.
package access

import (
	"context"
	"crypto/subtle"
	"errors"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/apikey"
	"molrun/app/fault"
	"molrun/app/naming"
	"molrun/app/unit"
)

// Accounts issues API keys and authenticates callers.
type Accounts struct {
	store app.Store
	blobs app.Blobs
	now   func() time.Time
	keys  apikey.Cache
	uses  apikey.Uses

	onChange func() // nil: nobody wants to know
}

// New returns the accounts of a store. The blobs know which links a key has made.
func New(store app.Store, blobs app.Blobs, now func() time.Time) *Accounts {
	return &Accounts{store: store, blobs: blobs, now: now}
}

// errUnauthorized answers every key that does not open, whatever the reason.
var errUnauthorized = &fault.Error{
	Code:    fault.Unauthorized,
	Message: "Send a valid API key in x-api-key; an administrator makes one with `molrun key create`.",
}

// Authenticate returns the caller behind a key, or Unauthorized.
func (s *Accounts) Authenticate(ctx context.Context, key string) (app.Caller, error) {
	id, secret, ok := apikey.Split(key)
	if !ok {
		return app.Caller{}, errUnauthorized
	}
	at := s.now() // before the key is read: links issued to it are not later than its end
	k, err := s.keyOf(ctx, id)
	if err != nil {
		return app.Caller{}, err
	}
	same := subtle.ConstantTimeCompare([]byte(apikey.Hash(secret)), []byte(k.Hash)) == 1
	if !same || !k.Live(at) {
		return app.Caller{}, errUnauthorized
	}
	s.uses.Note(k.ID, at)
	return app.Caller{KeyID: k.ID, Organization: k.Organization, Email: k.Email, Role: k.Role, At: at}, nil
}

// Recheck returns Unauthorized if the key of a caller is no longer valid.
func (s *Accounts) Recheck(ctx context.Context, by app.Caller) error {
	k, err := s.keyOf(ctx, by.KeyID)
	if err == nil && !k.Live(s.now()) {
		err = errUnauthorized
	}
	return err
}

// OnChange calls tell when a key may have changed. Call it before that can be.
func (s *Accounts) OnChange(tell func()) { s.onChange = tell }

// forgetKeys makes a change of a key known at once.
func (s *Accounts) forgetKeys() {
	s.keys.Forget()
	if s.onChange != nil {
		s.onChange()
	}
}

// keyOf returns the record of a key. An unknown key gets a record that never
// matches, so that the comparison takes the same time.
func (s *Accounts) keyOf(ctx context.Context, id string) (*apikey.Key, error) {
	k, changes := s.keys.Find(id)
	if k != nil {
		return k, nil
	}
	err := s.store.View(ctx, func(tx app.Tx) (err error) {
		k, err = tx.Key(id)
		return err
	})
	switch {
	case errors.Is(err, fault.NotFound):
		return &apikey.Key{Hash: apikey.Hash(""), Disabled: true}, nil
	case err != nil:
		return nil, err
	}
	s.keys.Keep(k, changes)
	return k, nil
}

// KeyRequest asks for a key; Expires 0 is never.
type KeyRequest struct {
	Organization, Email string
	Role                apikey.Role
	Expires             time.Duration
}

// CreateKey issues a key. The key itself is returned here and stored nowhere.
func (s *Accounts) CreateKey(ctx context.Context, r KeyRequest) (key string, rec *apikey.Key, err error) {
	if err := checkKeyRequest(r); err != nil {
		return "", nil, err
	}
	key, id, secret := apikey.New()
	rec = &apikey.Key{
		ID:           id,
		Hash:         apikey.Hash(secret),
		Organization: r.Organization,
		Email:        strings.ToLower(r.Email),
		Role:         r.Role,
		CreatedAt:    unit.At(s.now()),
	}
	if r.Expires > 0 {
		rec.ExpiresAt = unit.At(s.now().Add(r.Expires))
	}
	err = s.store.Update(ctx, func(tx app.Tx) error { return tx.PutKey(rec) })
	return key, rec, err
}

func checkKeyRequest(r KeyRequest) error {
	var faults []fault.Field
	add := func(member, msg string) {
		if msg != "" {
			faults = append(faults, fault.Field{Loc: []any{"body", member}, Msg: msg, Type: "value"})
		}
	}
	add("organization", naming.Check(r.Organization))
	add("email", naming.CheckEmail(r.Email))
	if r.Role != apikey.Member && r.Role != apikey.Admin {
		add("role", "use member or admin")
	}
	if r.Expires < 0 {
		add("expires", "use a time ahead, such as 90d")
	}
	return fault.List(faults...)
}

// Keys lists all keys, oldest first.
func (s *Accounts) Keys(ctx context.Context) (keys []*apikey.Key, err error) {
	err = s.store.View(ctx, func(tx app.Tx) (err error) {
		keys, err = tx.Keys()
		return err
	})
	return keys, err
}

// DisableKey disables a key or enables it again, with immediate effect.
func (s *Accounts) DisableKey(ctx context.Context, id string, disabled bool) (k *apikey.Key, err error) {
	defer s.forgetKeys()
	err = s.store.Update(ctx, func(tx app.Tx) (err error) {
		if k, err = keyNamed(tx, id); err != nil {
			return err
		}
		k.Disabled = disabled
		return tx.PutKey(k)
	})
	return k, err
}

// RevokeLinks ends all links that were made with a key, also for requests that
// are under way. Links made later work, if the key does.
func (s *Accounts) RevokeLinks(ctx context.Context, id string) error {
	err := s.store.View(ctx, func(tx app.Tx) error {
		_, err := keyNamed(tx, id)
		return err
	})
	if err != nil {
		return err
	}
	return s.blobs.RevokeLinks(id)
}

// DeleteKey deletes a key for good.
func (s *Accounts) DeleteKey(ctx context.Context, id string) error {
	defer s.forgetKeys()
	return s.store.Update(ctx, func(tx app.Tx) error {
		if _, err := keyNamed(tx, id); err != nil {
			return err
		}
		return tx.DeleteKey(id)
	})
}

func keyNamed(tx app.Tx, id string) (*apikey.Key, error) {
	k, err := tx.Key(id)
	if errors.Is(err, fault.NotFound) {
		return nil, fault.Errorf(fault.NotFound, "there is no key %q; `molrun key list` shows them", id)
	}
	return k, err
}

// RotateKey issues a successor for a key. The old key expires after the
// overlap, so that programs can switch without a pause. The successor of a key
// that expires lives as long as the old key was meant to.
func (s *Accounts) RotateKey(ctx context.Context, id string, overlap time.Duration) (key string, rec *apikey.Key, err error) {
	defer s.forgetKeys()
	key, newID, secret := apikey.New()
	err = s.store.Update(ctx, func(tx app.Tx) error {
		old, err := keyNamed(tx, id)
		if err != nil {
			return err
		}
		now := s.now()
		if !old.Live(now) {
			return fault.Errorf(fault.Invalid, "key %s is disabled or expired; make a new one with `molrun key create`", id)
		}
		if old.Successor != "" {
			return fault.Errorf(fault.Invalid, "key %s was rotated before; rotate its successor %s", id, old.Successor)
		}
		old.Successor = newID
		rec = old.Renew(newID, apikey.Hash(secret), now)
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
