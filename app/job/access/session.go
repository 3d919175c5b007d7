package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/netip"
	"slices"
	"strings"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
	"molrun/app/job/apikey"
)

// A session lets a browser act for an API key, or for a user, without storing the key
// where scripts can read it. It is a record rather than a signed token so that signing
// out ends it permanently, even if the cookie was copied. Its rights are looked up at
// each request: it ends with its key or user, and works only from the networks of the
// key. A rotated key and its sessions remain valid until the overlap ends.

// maxSessions is the maximum number of sessions of a key or user; the least recently used
// is dropped.
const maxSessions = 20

// BeginSession creates a session for a caller, valid as long as its key and at most for
// apikey.SessionLife. The cookie value is not stored.
func (s *Accounts) BeginSession(ctx context.Context, by app.Caller) (value string, made *apikey.Session, err error) {
	secret := rand.Text()
	err = s.store.Update(ctx, func(tx app.Tx) error {
		now := s.now()
		k, err := LimitedKey(tx, by.KeyID)
		if errors.Is(err, fault.NotFound) || err == nil && !k.Valid(now) {
			err = errUnauthorized
		}
		if err != nil {
			return err
		}
		made = &apikey.Session{
			Holder: k.ID, Hash: apikey.Hash(secret),
			CreatedAt: unit.At(now), LastUsedAt: unit.At(now), ExpiresAt: unit.At(now.Add(apikey.SessionLife)),
		}
		if end := k.ExpiresAt; !end.IsZero() && end.Before(made.ExpiresAt.Time) {
			made.ExpiresAt = end
		}
		if err := evictSessions(tx, k.ID); err != nil {
			return err
		}
		return tx.PutSession(made)
	})
	return base64.RawURLEncoding.EncodeToString([]byte(by.KeyID)) + "." + secret, made, err
}

// evictSessions deletes a holder's least recently used sessions to make space for one
// more.
func evictSessions(tx app.Tx, holder string) error {
	var all []*apikey.Session
	for one, err := range tx.Sessions(holder) {
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b *apikey.Session) int { return cmp.Compare(b.LastUsedAt.UnixNano(), a.LastUsedAt.UnixNano()) })
	for i := maxSessions - 1; i < len(all); i++ {
		if err := tx.DeleteSession(holder, all[i].Hash); err != nil {
			return err
		}
	}
	return nil
}

// AuthenticateSession returns the caller for a session cookie used from an address, or
// Unauthorized.
func (s *Accounts) AuthenticateSession(ctx context.Context, value string, from netip.Addr) (app.Caller, error) {
	encoded, secret, _ := strings.Cut(value, ".")
	holder, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || len(holder) == 0 {
		return app.Caller{}, errUnauthorized
	}
	at := s.now() // as in Authenticate
	hash := apikey.Hash(secret)
	if err := s.sessionLives(ctx, string(holder), hash); err != nil {
		return app.Caller{}, err
	}
	k, err := s.keyOf(ctx, string(holder))
	switch {
	case err != nil:
		return app.Caller{}, err
	case !k.Valid(at) || !k.Admits(from):
		return app.Caller{}, errUnauthorized
	}
	s.uses.Note(k.ID, at)
	s.uses.Note(sessionUse+hash+"/"+k.ID, at)
	return app.Caller{KeyID: k.ID, Organization: k.Organization, Email: k.Email, Rights: k.Rights(), At: at, Session: hash}, nil
}

// sessionUse is the prefix for recorded uses of sessions; hash/holder follows.
const sessionUse = "session:"

// sessionLives returns Unauthorized unless the session is valid. It does not check the
// holder.
func (s *Accounts) sessionLives(ctx context.Context, holder, hash string) error {
	one, err := s.session(ctx, holder, hash)
	if errors.Is(err, fault.NotFound) || err == nil && !one.Valid(s.now()) {
		return errUnauthorized
	}
	return err
}

func (s *Accounts) session(ctx context.Context, holder, hash string) (one *apikey.Session, err error) {
	err = s.store.View(ctx, func(tx app.Tx) error {
		one, err = tx.Session(holder, hash)
		return err
	})
	return one, err
}

// Self returns the caller's key, or the record that acts as the key of a user signed in
// by a proxy or a link, and the caller's session, or nil if it has none.
func (s *Accounts) Self(ctx context.Context, by app.Caller) (*apikey.Key, *apikey.Session, error) {
	k, err := s.keyOf(ctx, by.KeyID)
	if err != nil || by.Session == "" {
		return k, nil, err
	}
	one, err := s.session(ctx, by.KeyID, by.Session)
	if errors.Is(err, fault.NotFound) {
		err = errUnauthorized
	}
	return k, one, err
}

// EndSession signs out a caller at once. It does nothing for a caller without a session.
func (s *Accounts) EndSession(ctx context.Context, by app.Caller) error {
	if by.Session == "" {
		return nil
	}
	defer s.forgetKeys() // makes streams check their keys again
	return s.store.Update(ctx, func(tx app.Tx) error { return tx.DeleteSession(by.KeyID, by.Session) })
}

// DeleteExpiredSessions deletes the sessions that are no longer valid.
func (s *Accounts) DeleteExpiredSessions(ctx context.Context) error {
	return s.store.Update(ctx, func(tx app.Tx) error {
		for one, err := range tx.Sessions("") {
			if err != nil {
				return err
			}
			k, err := LimitedKey(tx, one.Holder)
			if err != nil && !errors.Is(err, fault.NotFound) {
				return err
			}
			if err == nil && k.Valid(s.now()) && one.Valid(s.now()) {
				continue
			}
			if err := tx.DeleteSession(one.Holder, one.Hash); err != nil {
				return err
			}
		}
		return nil
	})
}

// endSessions deletes the sessions of holders. If a holder is enabled again later, these
// sessions stay ended.
func endSessions(tx app.Tx, holders ...string) error {
	for _, holder := range holders {
		for one, err := range tx.Sessions(holder) {
			if err == nil {
				err = tx.DeleteSession(holder, one.Hash)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
