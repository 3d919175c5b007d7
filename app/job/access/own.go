package access

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/apikey"
)

// maxOwnKeys bounds how many keys a user has who makes them.
const maxOwnKeys = 100

// CreateOwnKey issues a key for the caller, with at most its own rights, from its own
// networks and as long as its own key lives. What r leaves out is as in that key.
func (s *Accounts) CreateOwnKey(ctx context.Context, by app.Caller, r KeyRequest) (key string, rec *apikey.Key, err error) {
	r.Organization, r.Email = by.Organization, by.Email
	return s.create(ctx, by, r, func(tx app.Tx, rec *apikey.Key) error {
		own, err := LimitedKey(tx, by.KeyID)
		if err != nil {
			return err
		}
		if err := inherit(rec, own, r); err != nil {
			return err
		}
		return checkNumber(tx, by)
	})
}

// inherit completes the record of a key that the user of own has asked for.
func inherit(rec, own *apikey.Key, r KeyRequest) error {
	if r.Role == "" {
		rec.Role = own.Role
	}
	if r.Scopes == nil {
		rec.Scopes = own.Scopes
	}
	if r.Networks == nil {
		rec.Networks = own.Networks
	}
	if r.Expires == 0 {
		rec.ExpiresAt = own.ExpiresAt
	}
	var f faults
	switch {
	case !own.Role.Rights().Has(rec.Role.Rights()):
		f.addFault(fmt.Sprintf("your key has the role %s; a key that you make can't have more", own.Role), "role")
	case !own.Rights().Has(rec.Rights()):
		f.addFault("your key has fewer scopes; a key that you make can't have more", "scopes")
	}
	for i, n := range rec.Networks {
		if !within(own.Networks, n) {
			f.addFault("your key works only from its own networks; a key that you make can't work elsewhere", "networks", i)
		}
	}
	if end := own.ExpiresAt; !end.IsZero() && rec.ExpiresAt.After(end.Time) {
		f.addFault("your key expires before that; omit this for the same expiry", "expiresSeconds")
	}
	return fault.List(f...)
}

// within reports whether one of the outer networks holds all of a network.
func within(outer []netip.Prefix, n netip.Prefix) bool {
	return len(outer) == 0 || slices.ContainsFunc(outer, func(o netip.Prefix) bool {
		return o.Bits() <= n.Bits() && o.Contains(n.Addr())
	})
}

func checkNumber(tx app.Tx, by app.Caller) error {
	keys, err := tx.Keys()
	if err != nil {
		return err
	}
	keys = slices.DeleteFunc(keys, func(k *apikey.Key) bool { return !ownedBy(by, k) })
	if len(keys) >= maxOwnKeys {
		return fault.Errorf(fault.QuotaExceeded, "you have %d API keys; delete those that you no longer need", len(keys))
	}
	return nil
}

// ownedBy reports whether a key is the caller's.
func ownedBy(by app.Caller, k *apikey.Key) bool {
	return k.Organization == by.Organization && k.Email == by.Email
}

// OwnKeys lists the keys of the caller, sorted by id.
func (s *Accounts) OwnKeys(ctx context.Context, by app.Caller) ([]*apikey.Key, error) {
	keys, err := s.Keys(ctx, by)
	return slices.DeleteFunc(keys, func(k *apikey.Key) bool { return !ownedBy(by, k) }), err
}

// DeleteOwnKey deletes a key of the caller, which may be the one that it uses.
func (s *Accounts) DeleteOwnKey(ctx context.Context, by app.Caller, id string) error {
	_, err := s.changeKey(ctx, by, id, func(tx app.Tx, k *apikey.Key) error {
		if !ownedBy(by, k) {
			return noKey(id, "GET /keys")
		}
		return tx.DeleteKey(id)
	})
	return err
}
