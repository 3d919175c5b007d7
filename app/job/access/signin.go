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

// SignIn maps users whom a proxy has signed in to accounts. The zero value signs in no user.
type SignIn struct {
	Organization string // of all these users
	Create       bool   // a user who is not known becomes a member
}

// AllowSignIn lets a proxy sign in users. Call it before the first request.
func (s *Accounts) AllowSignIn(how SignIn) { s.signIn = how }

// signedIn begins the KeyID of callers without a key, who have organization/email
// there. No key has such an id.
const signedIn = "user:"

// SignIn returns the caller whom a proxy has signed in under an e-mail address, with
// the rights of the user's role, or Unauthorized. Only users with a record sign in;
// the first sign-in of a user with keys makes it.
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

// AsGuest returns the caller of requests that need no key: a user who becomes a member with the
// first of them, so that an admin can limit or disable it, or Unauthorized.
func (s *Accounts) AsGuest(ctx context.Context, organization, email string) (app.Caller, error) {
	return s.asUser(ctx, organization, email, apikey.Member)
}

// asUser returns the caller of a user without a key, or Unauthorized. unknown is the role
// of a user who has neither a record nor a key; "" keeps such a user out.
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

// userID is the KeyID of a caller without a key.
func userID(organization, email string) string { return signedIn + organization + "/" + email }

// knownUser returns the record of a user, nil if the user may not sign in.
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

// firstRecord returns the record of a user who has none, nil if the user may not sign
// in. It limits no key that the user has, and allows no more than these together, by their
// roles and scopes. A user whose keys are all closed, or allow what no role does, stays out
// until an admin decides.
func (s *Accounts) firstRecord(tx app.Tx, organization, email string, unknown apikey.Role) (*apikey.User, error) {
	u := &apikey.User{Organization: organization, Email: email, CreatedAt: unit.At(s.now())}
	keys, err := tx.Keys()
	if err != nil {
		return nil, err
	}
	keys = slices.DeleteFunc(keys, func(k *apikey.Key) bool { return k.Organization != u.Organization || k.Email != email })
	var allowed apikey.Rights
	for _, k := range keys {
		if k.Live(s.now()) {
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

// LimitedKey returns the key behind the KeyID of a caller, as its user's record limits
// it. For a user whom a proxy has signed in, that record stands for a key.
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
	return k.Under(u), err
}
