package access

import (
	"context"
	"slices"
	"strings"

	"molrun/app"
	"molrun/app/base/naming"
	"molrun/app/base/unit"
	"molrun/app/job/apikey"
)

// SignIn maps users signed in by a proxy to accounts. The zero value signs in no users.
type SignIn struct {
	Organization string // of all these users
	Create       bool   // an unknown user becomes a member
}

// AllowSignIn lets a proxy sign in users. It must be called before the first request.
func (s *Accounts) AllowSignIn(how SignIn) { s.signIn = how }

// signedIn is the prefix of the KeyID of callers without a key; organization/email
// follows. No key has such an ID.
const signedIn = "user:"

// SignIn returns the caller signed in by a proxy with an e-mail address, with the rights
// of the user's role, or Unauthorized. Only users with a record can sign in; the first
// sign-in of a user with keys creates it.
func (s *Accounts) SignIn(ctx context.Context, email string) (app.Caller, error) {
	email = strings.ToLower(email)
	if s.signIn.Organization == "" || naming.CheckEmail(email) != "" {
		return app.Caller{}, errUnauthorized
	}
	unknown := apikey.Role("")
	if s.signIn.Create {
		unknown = apikey.Member
	}
	return s.asUser(ctx, s.signIn.Organization, email, unknown)
}

// AsGuest returns the caller for requests without a key, or Unauthorized. The user
// becomes a member with the first such request, so that an admin can limit or disable it.
func (s *Accounts) AsGuest(ctx context.Context, organization, email string) (app.Caller, error) {
	return s.asUser(ctx, organization, email, apikey.Member)
}

// asUser returns the caller for a user without a key, or Unauthorized. unknown is the
// role of a user with neither a record nor a key; "" rejects such a user.
func (s *Accounts) asUser(ctx context.Context, organization, email string, unknown apikey.Role) (app.Caller, error) {
	at := s.now()
	u, err := s.knownUser(ctx, organization, email, unknown)
	switch {
	case err != nil:
		return app.Caller{}, err
	case u == nil || u.Disabled || u.Role.Rights() == 0:
		return app.Caller{}, errUnauthorized
	}
	id := userID(u.Organization, u.Email)
	s.uses.Note(id, at)
	return app.Caller{KeyID: id, Organization: u.Organization, Email: u.Email, Rights: u.Role.Rights(), At: at}, nil
}

// userID returns the KeyID of a caller without a key.
func userID(organization, email string) string { return signedIn + organization + "/" + email }

// knownUser returns the record of a user, or nil if the user is not allowed to sign in.
func (s *Accounts) knownUser(ctx context.Context, organization, email string, unknown apikey.Role) (u *apikey.User, err error) {
	stored := false
	err = s.store.View(ctx, func(tx app.Tx) error {
		if u, err = userOf(tx, organization, email); err != nil {
			return err
		}
		if stored = u != nil; !stored {
			u, err = s.firstRecord(tx, organization, email, unknown)
		}
		return err
	})
	if err != nil || stored || u == nil {
		return u, err
	}
	err = s.store.Update(ctx, func(tx app.Tx) error {
		now, err := userOf(tx, organization, email)
		if err == nil && now == nil {
			if now, err = s.firstRecord(tx, organization, email, unknown); err == nil && now != nil {
				err = tx.PutUser(now)
			}
		}
		u = now
		return err
	})
	return u, err
}

// firstRecord returns the first record of a user, or nil if the user is not allowed to
// sign in. The record limits none of the user's keys, and allows no more than the roles
// and scopes of the valid keys together. If none of the keys is valid, or no role has
// exactly their combined rights, the user is rejected until an admin sets a role.
func (s *Accounts) firstRecord(tx app.Tx, organization, email string, unknown apikey.Role) (*apikey.User, error) {
	u := &apikey.User{Organization: organization, Email: email, CreatedAt: unit.At(s.now())}
	keys, err := tx.Keys()
	if err != nil {
		return nil, err
	}
	keys = slices.DeleteFunc(keys, func(k *apikey.Key) bool { return k.Organization != u.Organization || k.Email != email })
	var allowed apikey.Rights
	for _, k := range keys {
		if k.Valid(s.now()) {
			allowed |= k.Rights()
		}
	}
	if u.Role = apikey.RoleWith(allowed); len(keys) == 0 {
		u.Role = unknown
	}
	if u.Role == "" {
		return nil, nil
	}
	return u, nil
}

// LimitedKey returns the key for a caller's KeyID, limited by the record of its user. For
// a user signed in without a key, it makes a key from that record.
func LimitedKey(tx app.Tx, id string) (*apikey.Key, error) {
	if name, found := strings.CutPrefix(id, signedIn); found {
		organization, email, _ := strings.Cut(name, "/")
		u, err := tx.User(organization, email)
		if err != nil {
			return nil, err
		}
		return &apikey.Key{ID: id, Organization: organization, Email: email, Role: u.Role, Disabled: u.Disabled}, nil
	}
	k, err := tx.Key(id)
	if err != nil {
		return nil, err
	}
	u, err := userOf(tx, k.Organization, k.Email)
	return k.LimitedBy(u), err
}
