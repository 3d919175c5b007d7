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

// maxOwnKeys is the number of keys at which a user can't create another one.
const maxOwnKeys = 100

// CreateOwnKey issues a key for the caller, with at most the rights, networks and
// validity of the caller's own key. Fields omitted from r are copied from that key.
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
		return checkOwnKeyCount(tx, by)
	})
}

// inherit completes the record of a key requested with the key own.
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
		f.addFault(fmt.Sprintf("your key has the role %s; a key that you create can't have a higher one", own.Role), "role")
	case !own.Rights().Has(rec.Rights()):
		f.addFault("your key has fewer scopes; a key that you create can't have more", "scopes")
	}
	for i, n := range rec.Networks {
		if !within(own.Networks, n) {
			f.addFault("your key is restricted to certain networks; a key that you create can't allow others", "networks", i)
		}
	}
	if end := own.ExpiresAt; !end.IsZero() && rec.ExpiresAt.After(end.Time) {
		f.addFault("your key expires before that; omit this for the same expiry", "expiresSeconds")
	}
	return fault.List(f...)
}

// within reports whether one of the outer networks contains all of n. No outer networks
// means all addresses.
func within(outer []netip.Prefix, n netip.Prefix) bool {
	return len(outer) == 0 || slices.ContainsFunc(outer, func(o netip.Prefix) bool {
		return o.Bits() <= n.Bits() && o.Contains(n.Addr())
	})
}

func checkOwnKeyCount(tx app.Tx, by app.Caller) error {
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

func ownedBy(by app.Caller, k *apikey.Key) bool {
	return k.Organization == by.Organization && k.Email == by.Email
}

// OwnKeys returns the caller's keys, sorted by ID.
func (s *Accounts) OwnKeys(ctx context.Context, by app.Caller) ([]*apikey.Key, error) {
	keys, err := s.Keys(ctx, by)
	return slices.DeleteFunc(keys, func(k *apikey.Key) bool { return !ownedBy(by, k) }), err
}

// DeleteOwnKey deletes a key of the caller, possibly the one in use.
func (s *Accounts) DeleteOwnKey(ctx context.Context, by app.Caller, id string) error {
	_, err := s.changeKey(ctx, by, id, func(tx app.Tx, k *apikey.Key) error {
		if !ownedBy(by, k) {
			return noKey(id, "GET /keys")
		}
		return tx.DeleteKey(id)
	})
	return err
}
