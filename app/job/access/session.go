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

// A session lets a browser act for an API key, or for a user, without keeping the key
// where scripts can read it. It is a record rather than a signed token so that signing
// out ends it for good, wherever a copy of the cookie may be. What it allows is looked up
// with each request: it ends with its key or user, and works only from the networks of
// the key. A rotated key and its sessions go on until the overlap is over.

// maxSessions bounds the sessions of a key or user; the least recently used makes way.
const maxSessions = 20

// BeginSession makes a session for a caller, as long as its key lives and at most
// apikey.SessionLife. The value of its cookie is stored nowhere.
func (s *Accounts) BeginSession(ctx context.Context, by app.Caller) (value string, made *apikey.Session, err error) {
	secret := rand.Text()
	err = s.store.Update(ctx, func(tx app.Tx) error {
		now := s.now()
		k, err := LimitedKey(tx, by.KeyID)
		if errors.Is(err, fault.NotFound) || err == nil && !k.Live(now) {
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

// evictSessions deletes the sessions of a holder that are one too many.
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

// OfSession returns the caller behind the value of a session's cookie that comes from an
// address, or Unauthorized.
func (s *Accounts) OfSession(ctx context.Context, value string, from netip.Addr) (app.Caller, error) {
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
	case !k.Live(at) || !k.Admits(from):
		return app.Caller{}, errUnauthorized
	}
	s.uses.Note(k.ID, at)
	s.uses.Note(sessionUse+hash+"/"+k.ID, at)
	return app.Caller{KeyID: k.ID, Organization: k.Organization, Email: k.Email, Rights: k.Rights(), At: at, Session: hash}, nil
}

// sessionUse begins the names under which uses of sessions are noted; hash/holder follows.
const sessionUse = "session:"

// sessionLives returns Unauthorized unless a session is valid, its holder aside.
func (s *Accounts) sessionLives(ctx context.Context, holder, hash string) error {
	one, err := s.session(ctx, holder, hash)
	if errors.Is(err, fault.NotFound) || err == nil && !one.Live(s.now()) {
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

// Self returns what a caller goes by: its key, or what stands for the key of a user whom
// a proxy or a link has signed in, and its session, nil if it has none.
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

// EndSession signs out a caller, at once. One without a session has nothing to end.
func (s *Accounts) EndSession(ctx context.Context, by app.Caller) error {
	if by.Session == "" {
		return nil
	}
	defer s.forgetKeys() // has streams check their keys again
	return s.store.Update(ctx, func(tx app.Tx) error { return tx.DeleteSession(by.KeyID, by.Session) })
}

// DeleteExpiredSessions deletes the sessions that have ended.
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
			if err == nil && k.Live(s.now()) && one.Live(s.now()) {
				continue
			}
			if err := tx.DeleteSession(one.Holder, one.Hash); err != nil {
				return err
			}
		}
		return nil
	})
}

// endSessions deletes the sessions of holders who may come back; their sessions don't.
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
