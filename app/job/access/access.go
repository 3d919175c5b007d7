// Package access issues API keys and authenticates callers.
package access

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/netip"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/apikey"
)

// Accounts issues API keys and authenticates callers.
type Accounts struct {
	store app.Store
	blobs app.Blobs
	now   func() time.Time
	keys  apikey.Cache
	uses  apikey.Uses

	invited  invitations
	signIn   SignIn
	onChange func()       // optional
	onRevoke func(string) // optional
}

// New returns the accounts of a store. The blobs are used to revoke the links of a key.
func New(store app.Store, blobs app.Blobs, now func() time.Time) *Accounts {
	return &Accounts{store: store, blobs: blobs, now: now}
}

// errUnauthorized is returned for every invalid key, whatever the reason.
var errUnauthorized = &fault.Error{
	Code:    fault.Unauthorized,
	Message: "Send a valid API key in x-api-key; an administrator can create one with `molrun key create`.",
}

// Authenticate returns the caller for a key used from an address, or Unauthorized.
func (s *Accounts) Authenticate(ctx context.Context, key string, from netip.Addr) (app.Caller, error) {
	id, secret, ok := apikey.Split(key)
	if !ok {
		return app.Caller{}, errUnauthorized
	}
	at := s.now() // before the key is read, so that links issued to it end no later than the key
	k, err := s.keyOf(ctx, id)
	if err != nil {
		return app.Caller{}, err
	}
	same := subtle.ConstantTimeCompare([]byte(apikey.Hash(secret)), []byte(k.Hash)) == 1
	if !same || !k.Valid(at) || !k.Admits(from) {
		return app.Caller{}, errUnauthorized
	}
	s.uses.Note(k.ID, at)
	return app.Caller{KeyID: k.ID, Organization: k.Organization, Email: k.Email, Rights: k.Rights(), At: at}, nil
}

// Recheck returns Unauthorized if the caller's key or session is no longer valid, or the
// key has fewer rights than before.
func (s *Accounts) Recheck(ctx context.Context, by app.Caller) error {
	if by.Session != "" {
		if err := s.sessionLives(ctx, by.KeyID, by.Session); err != nil {
			return err
		}
		s.uses.Note(sessionUse+by.Session+"/"+by.KeyID, s.now())
	}
	k, err := s.keyOf(ctx, by.KeyID)
	if err == nil && !(k.Valid(s.now()) && k.Rights().Has(by.Rights)) {
		err = errUnauthorized
	}
	return err
}

// OnChange calls notify when a key might have changed. It must be called before that can
// happen.
func (s *Accounts) OnChange(notify func()) { s.onChange = notify }

// forgetKeys makes a change of a key effective at once.
func (s *Accounts) forgetKeys() {
	s.keys.Forget()
	if s.onChange != nil {
		s.onChange()
	}
}

// keyOf returns the record of a key, limited by the record of its user. For an unknown
// key it returns a record that never matches, so that the comparison takes the same time.
func (s *Accounts) keyOf(ctx context.Context, id string) (*apikey.Key, error) {
	k, changes := s.keys.Find(id)
	if k != nil {
		return k, nil
	}
	err := s.store.View(ctx, func(tx app.Tx) (err error) {
		k, err = LimitedKey(tx, id)
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

// userOf returns the record of a user, or nil if there is none.
func userOf(tx app.Tx, organization, email string) (*apikey.User, error) {
	u, err := tx.User(organization, email)
	if errors.Is(err, fault.NotFound) {
		return nil, nil
	}
	return u, err
}

// recheck returns Unauthorized if the caller has fewer rights than when the request
// arrived: another request might have changed its own key or user.
func (s *Accounts) recheck(tx app.Tx, by app.Caller) error {
	if by.Operator {
		return nil
	}
	k, err := LimitedKey(tx, by.KeyID)
	if errors.Is(err, fault.NotFound) || err == nil && !(k.Valid(s.now()) && k.Rights().Has(by.Rights)) {
		return errUnauthorized
	}
	return err
}
