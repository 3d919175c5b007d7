package access

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/naming"
	"molrun/app/base/unit"
	"molrun/app/job/apikey"
)

// User is a user of an organization: someone with a key or a record.
type User struct {
	apikey.User
	Keys   int
	UsedAt unit.Time // last use of the account or any of its keys
	Jobs   int       // rows of batches are counted, batches are not
}

// Users returns the users that a caller manages, sorted by organization and e-mail: all
// users for the operator, and those of the organization for an admin.
func (s *Accounts) Users(ctx context.Context, by app.Caller) (users []*User, err error) {
	err = s.store.View(ctx, func(tx app.Tx) error {
		users, err = usersOf(tx, func(organization, _ string) bool { return by.Operator || organization == by.Organization })
		for _, u := range users {
			for share, err := range tx.JobShares(u.Organization, u.Email) {
				if err != nil {
					return err
				}
				u.Jobs += share.Jobs
			}
		}
		return err
	})
	return users, err
}

// usersOf merges records and keys. The role of a user without a record is the highest
// role of its keys.
func usersOf(tx app.Tx, wanted func(organization, email string) bool) ([]*User, error) {
	records, err := tx.Users()
	if err != nil {
		return nil, err
	}
	keys, err := tx.Keys()
	if err != nil {
		return nil, err
	}
	type name struct{ organization, email string }
	users, decided := map[name]*User{}, map[name]bool{}
	for _, u := range records {
		n := name{u.Organization, u.Email}
		users[n], decided[n] = &User{User: *u, UsedAt: u.LastUsedAt}, true
	}
	for _, k := range keys {
		n := name{k.Organization, k.Email}
		u := users[n]
		if u == nil {
			u = &User{User: apikey.User{Organization: k.Organization, Email: k.Email, CreatedAt: k.CreatedAt}}
			users[n] = u
		}
		u.addKey(k, !decided[n])
	}
	var found []*User
	for n, u := range users {
		if wanted(n.organization, n.email) {
			found = append(found, u)
		}
	}
	slices.SortFunc(found, func(a, b *User) int {
		return cmp.Or(strings.Compare(a.Organization, b.Organization), strings.Compare(a.Email, b.Email))
	})
	return found, nil
}

// addKey counts a key of the user. If the user has no record, its role follows from its
// keys.
func (u *User) addKey(k *apikey.Key, undecided bool) {
	u.Keys++
	if undecided && k.Role.Rights().Has(u.Role.Rights()) {
		u.Role = k.Role
	}
	if k.CreatedAt.Before(u.CreatedAt.Time) {
		u.CreatedAt = k.CreatedAt
	}
	if k.LastUsedAt.After(u.UsedAt.Time) {
		u.UsedAt = k.LastUsedAt
	}
}

// UserChange is a change to a user; an empty field keeps the current value.
type UserChange struct {
	Role     apikey.Role
	Disabled *bool
}

// ChangeUser changes a known user of an organization or creates a new one, with immediate
// effect on all keys of the user.
func (s *Accounts) ChangeUser(ctx context.Context, by app.Caller, organization, email string, change UserChange) (u *User, err error) {
	email = strings.ToLower(email)
	if err := checkUserChange(organization, email, change); err != nil {
		return nil, err
	}
	defer s.forgetKeys()
	err = s.store.Update(ctx, func(tx app.Tx) error {
		if err := s.recheck(tx, by); err != nil {
			return err
		}
		if u, err = userNamed(tx, organization, email); err != nil {
			return err
		}
		u.apply(organization, email, change, s.now())
		if err := tx.PutUser(&u.User); err != nil {
			return err
		}
		if u.Disabled {
			if err := endUserSessions(tx, organization, email); err != nil {
				return err
			}
		}
		return s.checkStaysAdmin(tx, by, false)
	})
	return u, err
}

func checkUserChange(organization, email string, change UserChange) error {
	var f []fault.Field
	if msg := naming.CheckEmail(email); msg != "" {
		f = append(f, fault.Field{Loc: []any{"path", "email"}, Msg: msg, Type: "value"})
	}
	if msg := naming.CheckName(organization); msg != "" {
		f = append(f, fault.Field{Loc: []any{"query", "organization"}, Msg: msg, Type: "value"})
	}
	if change.Role != "" && change.Role.Rights() == 0 {
		f = append(f, fault.Field{Loc: []any{"body", "role"}, Msg: roles, Type: "value"})
	}
	return fault.List(f...)
}

// userNamed returns a user as listed, or an empty User if there is none.
func userNamed(tx app.Tx, organization, email string) (*User, error) {
	found, err := usersOf(tx, func(o, e string) bool { return o == organization && e == email })
	if err != nil || len(found) == 0 {
		return &User{}, err
	}
	return found[0], nil
}

func (u *User) apply(organization, email string, change UserChange, now time.Time) {
	if u.Email == "" {
		u.User = apikey.User{Organization: organization, Email: email, Role: apikey.Member, CreatedAt: unit.At(now)}
	}
	u.Role = cmp.Or(change.Role, u.Role)
	if change.Disabled != nil {
		u.Disabled = *change.Disabled
	}
}

// DeleteUser deletes the record and all keys of a user. Jobs and uploads are kept.
func (s *Accounts) DeleteUser(ctx context.Context, by app.Caller, organization, email string) error {
	defer s.forgetKeys()
	return s.store.Update(ctx, func(tx app.Tx) error {
		if err := s.recheck(tx, by); err != nil {
			return err
		}
		if err := deleteUser(tx, organization, strings.ToLower(email)); err != nil {
			return err
		}
		return s.checkStaysAdmin(tx, by, false)
	})
}

func deleteUser(tx app.Tx, organization, email string) error {
	u, err := userOf(tx, organization, email)
	if err != nil {
		return err
	}
	if err := endUserSessions(tx, organization, email); err != nil {
		return err
	}
	found := u != nil
	if found {
		if err := tx.DeleteUser(organization, email); err != nil {
			return err
		}
	}
	keys, err := tx.Keys()
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.Organization != organization || k.Email != email {
			continue
		}
		found = true
		if err := tx.DeleteKey(k.ID); err != nil {
			return err
		}
	}
	if !found {
		return fault.Errorf(fault.NotFound, "there is no user %q", email)
	}
	return nil
}

// endUserSessions deletes the sessions of a user and of all the user's keys.
func endUserSessions(tx app.Tx, organization, email string) error {
	keys, err := tx.Keys()
	if err != nil {
		return err
	}
	holders := []string{userID(organization, email)}
	for _, k := range keys {
		if k.Organization == organization && k.Email == email {
			holders = append(holders, k.ID)
		}
	}
	return endSessions(tx, holders...)
}

// IsOnlyOrganization reports whether the caller's organization is the only one with users. Its admins
// are then allowed to see data about the whole service.
func (s *Accounts) IsOnlyOrganization(ctx context.Context, by app.Caller) (alone bool, err error) {
	err = s.store.View(ctx, func(tx app.Tx) error {
		others, err := usersOf(tx, func(organization, _ string) bool { return organization != by.Organization })
		alone = len(others) == 0
		return err
	})
	return alone, err
}
