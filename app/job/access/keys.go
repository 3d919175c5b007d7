package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/naming"
	"molrun/app/base/unit"
	"molrun/app/job/apikey"
)

// KeyRequest is a request for a key. Role "" means member, no Scopes means all that the
// role allows, no Networks means any address, and Expires 0 means never.
type KeyRequest struct {
	Organization, Email string
	Role                apikey.Role
	Scopes              []apikey.Scope
	Networks            []string // addresses and CIDR blocks
	Name                string
	Expires             time.Duration
}

// CreateKey issues a key for a user whom the caller manages. The key itself is returned
// but not stored.
func (s *Accounts) CreateKey(ctx context.Context, by app.Caller, r KeyRequest) (key string, rec *apikey.Key, err error) {
	return s.create(ctx, by, r, func(tx app.Tx, rec *apikey.Key) error {
		u, err := userOf(tx, rec.Organization, rec.Email)
		switch {
		case err != nil || u == nil:
			return err
		case u.Disabled:
			return fault.List(bodyFault("this user is disabled; enable the user first", "email"))
		case r.Role == "":
			rec.Role = rec.LimitedBy(u).Role
		}
		return checkRole(rec, u)
	})
}

// checkRole rejects a key's role that exceeds that of the user's record.
func checkRole(k *apikey.Key, u *apikey.User) error {
	if k.LimitedBy(u).Role == k.Role {
		return nil
	}
	return fault.List(bodyFault(fmt.Sprintf("%s is a %s; change the role of the user first", u.Email, u.Role), "role"))
}

// create issues a key once finish has completed and checked its record.
func (s *Accounts) create(ctx context.Context, by app.Caller, r KeyRequest, finish func(app.Tx, *apikey.Key) error) (key string, rec *apikey.Key, err error) {
	networks, err := r.validate()
	if err != nil {
		return "", nil, err
	}
	key, id, secret := apikey.New()
	err = s.store.Update(ctx, func(tx app.Tx) error {
		now := s.now()
		rec = &apikey.Key{
			ID:           id,
			Hash:         apikey.Hash(secret),
			Organization: r.Organization,
			Email:        strings.ToLower(r.Email),
			Role:         cmp.Or(r.Role, apikey.Member),
			Scopes:       r.Scopes,
			Networks:     networks,
			Name:         r.Name,
			CreatedAt:    unit.At(now),
			MadeBy:       by.KeyID,
		}
		if r.Expires > 0 {
			rec.ExpiresAt = unit.At(now.Add(r.Expires))
		}
		if err := s.recheck(tx, by); err != nil {
			return err
		}
		if err := finish(tx, rec); err != nil {
			return err
		}
		return tx.PutKey(rec)
	})
	return key, rec, err
}

// validate returns the parsed networks of a request, or all its validation errors.
func (r KeyRequest) validate() (networks []netip.Prefix, err error) {
	var f faults
	f.addFault(naming.CheckName(r.Organization), "organization")
	f.addFault(naming.CheckEmail(r.Email), "email")
	f.addLimits(r.Role, r.Scopes, r.Name)
	for i, text := range r.Networks {
		network, err := apikey.Network(text)
		if err != nil {
			f.addFault("write an address or a block, such as 10.0.0.7 or 192.0.2.0/24", "networks", i)
		}
		networks = append(networks, network)
	}
	if r.Expires < 0 {
		f.addFault("use a time in the future, such as 90d", "expires")
	}
	return networks, fault.List(f...)
}

// faults collects the validation errors of a request body.
type faults []fault.Field

// addFault records an error at a path, unless msg is "".
func (f *faults) addFault(msg string, at ...any) {
	if msg != "" {
		*f = append(*f, bodyFault(msg, at...))
	}
}

func bodyFault(msg string, at ...any) fault.Field {
	return fault.Field{Loc: append([]any{"body"}, at...), Msg: msg, Type: "value"}
}

// addLimits validates the fields of a key other than its user.
func (f *faults) addLimits(role apikey.Role, scopes []apikey.Scope, name string) {
	if role != "" && role.Rights() == 0 {
		f.addFault(roles, "role")
	}
	for i, s := range scopes {
		if s.Rights() == 0 {
			f.addFault("use read, submit or admin", "scopes", i)
		}
	}
	if name != "" {
		f.addFault(naming.CheckName(name), "name")
	}
}

const roles = "use viewer, member or admin"

// Keys returns the keys that a caller manages, sorted by ID: all keys for the operator,
// the keys of the organization for an admin, and only the caller's own keys otherwise.
func (s *Accounts) Keys(ctx context.Context, by app.Caller) (keys []*apikey.Key, err error) {
	err = s.store.View(ctx, func(tx app.Tx) error {
		all, err := tx.Keys()
		for _, k := range all {
			if manages(by, k) {
				keys = append(keys, k)
			}
		}
		return err
	})
	return keys, err
}

// KeyChange is a change to a key; an empty field keeps the current value.
type KeyChange struct {
	Role   apikey.Role
	Scopes []apikey.Scope
	Name   string
}

// ChangeKey changes a key's role, scopes or name, with immediate effect.
func (s *Accounts) ChangeKey(ctx context.Context, by app.Caller, id string, change KeyChange) (*apikey.Key, error) {
	var f faults
	f.addLimits(change.Role, change.Scopes, change.Name)
	if err := fault.List(f...); err != nil {
		return nil, err
	}
	return s.changeKey(ctx, by, id, func(tx app.Tx, k *apikey.Key) error {
		u, err := userOf(tx, k.Organization, k.Email)
		if err != nil {
			return err
		}
		k.Name = cmp.Or(change.Name, k.Name)
		if change.Scopes != nil {
			k.Scopes = change.Scopes
		}
		if change.Role != "" {
			k.Role = change.Role
			err = checkRole(k, u)
		}
		if err != nil {
			return err
		}
		return tx.PutKey(k)
	})
}

// manages reports whether a caller can see and change a key.
func manages(by app.Caller, k *apikey.Key) bool {
	return by.Operator || k.Organization == by.Organization && by.May(k.Email)
}

// DisableKey disables or enables a key, with immediate effect.
func (s *Accounts) DisableKey(ctx context.Context, by app.Caller, id string, disabled bool) (*apikey.Key, error) {
	return s.changeKey(ctx, by, id, func(tx app.Tx, k *apikey.Key) error {
		k.Disabled = disabled
		if err := tx.PutKey(k); err != nil || !disabled {
			return err
		}
		return endSessions(tx, k.ID)
	})
}

// DeleteKey deletes a key permanently.
func (s *Accounts) DeleteKey(ctx context.Context, by app.Caller, id string) error {
	_, err := s.changeKey(ctx, by, id, func(tx app.Tx, _ *apikey.Key) error { return tx.DeleteKey(id) })
	return err
}

// changeKey applies change to a key that the caller manages and makes it effective at
// once. Admins can't remove their own rights, so an organization that has admins keeps
// one.
func (s *Accounts) changeKey(ctx context.Context, by app.Caller, id string, change func(app.Tx, *apikey.Key) error) (k *apikey.Key, err error) {
	defer s.forgetKeys()
	err = s.store.Update(ctx, func(tx app.Tx) (err error) {
		if err := s.recheck(tx, by); err != nil {
			return err
		}
		if k, err = managedKey(tx, by, id); err != nil {
			return err
		}
		if err := change(tx, k); err != nil {
			return err
		}
		return s.checkStaysAdmin(tx, by, k.Successor != "")
	})
	return k, err
}

// checkStaysAdmin rejects a change by which an admin would lose its own admin rights, unless
// its key has been replaced.
func (s *Accounts) checkStaysAdmin(tx app.Tx, by app.Caller, replaced bool) error {
	if by.Operator || !by.Administers() || replaced {
		return nil
	}
	if err := s.recheck(tx, by); errors.Is(err, fault.Unauthorized) {
		return fault.Errorf(fault.Forbidden, "you would no longer be an admin; let another admin do this, or use another key")
	} else if err != nil {
		return err
	}
	return nil
}

// managedKey returns a key that the caller manages, and NotFound for any other key.
func managedKey(tx app.Tx, by app.Caller, id string) (*apikey.Key, error) {
	k, err := tx.Key(id)
	if errors.Is(err, fault.NotFound) || err == nil && !manages(by, k) {
		return nil, noKey(id, keyList(by))
	}
	return k, err
}

func noKey(id, list string) error {
	return fault.Errorf(fault.NotFound, "there is no key %q; %s shows them", id, list)
}

// keyList returns the command or request that lists the keys of a caller.
func keyList(by app.Caller) string {
	switch {
	case by.Operator:
		return "`molrun key list`"
	case by.Administers():
		return "GET /admin/keys"
	}
	return "GET /keys"
}

// RevokeLinks permanently revokes all links made with a key, including for requests in
// progress: links to files, archives, uploads, shares and logs. id is the ID of the key,
// or user:organization/email for a user who signed in through a proxy and has no key.
// Links made later work as long as the key does.
func (s *Accounts) RevokeLinks(ctx context.Context, by app.Caller, id string) error {
	err := s.store.Update(ctx, func(tx app.Tx) error {
		k, err := LimitedKey(tx, id)
		if errors.Is(err, fault.NotFound) || err == nil && !manages(by, k) {
			return noKey(id, keyList(by))
		}
		if err != nil {
			return err
		}
		return deleteShares(tx, k.Organization, func(one *app.Share) bool { return one.KeyID == id })
	})
	if err != nil {
		return err
	}
	if s.onRevoke != nil {
		s.onRevoke(id)
	}
	return s.blobs.RevokeLinks(id)
}

// RevokeAllLinks revokes, for all users, the links that are not signed with the secret:
// links to shares, sign-in links and links to logs.
func (s *Accounts) RevokeAllLinks(ctx context.Context) error {
	err := s.store.Update(ctx, func(tx app.Tx) error {
		organizations, err := tx.Organizations()
		for _, one := range organizations {
			if err == nil {
				err = deleteShares(tx, one, func(*app.Share) bool { return true })
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	s.invited.clearAll()
	if s.onRevoke != nil {
		s.onRevoke("")
	}
	return nil
}

func deleteShares(tx app.Tx, organization string, which func(*app.Share) bool) error {
	for one, err := range tx.Shares(organization) {
		if err == nil && which(one) {
			err = tx.DeleteShare(one.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// OnRevoke calls notify with the ID of the key whose links were revoked; "" means all
// keys. It must be called before any link can be revoked.
func (s *Accounts) OnRevoke(notify func(id string)) { s.onRevoke = notify }

// RotateKey issues a successor for a key. The old key expires after the overlap, so that
// programs can switch without interruption. If the old key had an expiry, the successor
// gets the same validity period.
func (s *Accounts) RotateKey(ctx context.Context, by app.Caller, id string, overlap time.Duration) (key string, rec *apikey.Key, err error) {
	key, newID, secret := apikey.New()
	_, err = s.changeKey(ctx, by, id, func(tx app.Tx, old *apikey.Key) error {
		now := s.now()
		if !old.Valid(now) {
			return fault.Errorf(fault.Invalid, "key %s is disabled or expired; create a new one", id)
		}
		if old.Successor != "" {
			return fault.Errorf(fault.Invalid, "key %s was already rotated; rotate its successor %s", id, old.Successor)
		}
		old.Successor = newID
		rec = old.Renew(newID, apikey.Hash(secret), now)
		rec.MadeBy = by.KeyID
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
