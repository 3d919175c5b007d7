package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"sync"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/naming"
	"molrun/app/job/apikey"
)

// LinkLife is how long a sign-in link is valid.
const LinkLife = 10 * time.Minute

// maxLinks is the maximum number of links that can exist at a time. The oldest is dropped
// to make space.
const maxLinks = 100

// Invitation lets anyone with its token sign in as a user, once.
type Invitation struct {
	Token               string
	Organization, Email string
	Role                apikey.Role // for a user with neither a record nor a key
	ExpiresAt           time.Time
}

// invitations holds the unused invitations. They are kept in memory only, by the hashes
// of their tokens, so they do not survive a restart.
type invitations struct {
	mu     sync.Mutex
	byHash map[string]Invitation
}

func (l *invitations) addInvitation(i Invitation, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byHash == nil {
		l.byHash = map[string]Invitation{}
	}
	first := ""
	for hash, other := range l.byHash {
		if !now.Before(other.ExpiresAt) {
			delete(l.byHash, hash)
		} else if first == "" || other.ExpiresAt.Before(l.byHash[first].ExpiresAt) {
			first = hash
		}
	}
	if len(l.byHash) >= maxLinks {
		delete(l.byHash, first)
	}
	hash := apikey.Hash(i.Token)
	i.Token = ""
	l.byHash[hash] = i
}

func (l *invitations) clearAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.byHash)
}

// redeem removes an invitation and returns it if it has not expired.
func (l *invitations) redeem(token string, now time.Time) (Invitation, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hash := apikey.Hash(token)
	i, found := l.byHash[hash]
	delete(l.byHash, hash)
	return i, found && now.Before(i.ExpiresAt)
}

// The user of an invitation if there are no keys yet.
const (
	firstOrganization = "lab"
	firstEmail        = "admin@localhost"
)

// Invite creates an invitation for a user. Organization and email can be omitted if the
// user is unambiguous. If there are no users yet, it invites the first admin.
func (s *Accounts) Invite(ctx context.Context, organization, email string) (Invitation, error) {
	email = strings.ToLower(email)
	var users []*User
	err := s.store.View(ctx, func(tx app.Tx) (err error) {
		users, err = usersOf(tx, func(string, string) bool { return true })
		return err
	})
	if err != nil {
		return Invitation{}, err
	}
	i := Invitation{Token: rand.Text() + rand.Text()[:8], ExpiresAt: s.now().Add(LinkLife)}
	if len(users) == 0 {
		i.Organization, i.Email, i.Role = cmp.Or(organization, firstOrganization), cmp.Or(email, firstEmail), apikey.Admin
	} else {
		if i.Organization, i.Email, err = uniqueUser(users, organization, email); err == nil {
			err = s.checkCanSignIn(ctx, i.Organization, i.Email)
		}
		if err != nil {
			return Invitation{}, err
		}
	}
	var f faults
	f.addFault(naming.CheckName(i.Organization), "organization")
	f.addFault(naming.CheckEmail(i.Email), "email")
	if err := fault.List(f...); err != nil {
		return Invitation{}, err
	}
	s.invited.addInvitation(i, s.now())
	return i, nil
}

// uniqueUser returns the only matching user, or otherwise the only admin among the matching
// users.
func uniqueUser(users []*User, organization, email string) (string, string, error) {
	users = slices.DeleteFunc(users, func(u *User) bool {
		return organization != "" && u.Organization != organization || email != "" && u.Email != email
	})
	if len(users) > 1 {
		admins := slices.DeleteFunc(slices.Clone(users), func(u *User) bool { return u.Role != apikey.Admin || u.Disabled })
		if len(admins) == 1 {
			users = admins
		}
	}
	switch {
	case len(users) == 0:
		return "", "", fault.Errorf(fault.NotFound, "there is no such user; `molrun user list` shows all, and `molrun key create` creates a key for a new one")
	case len(users) > 1:
		return "", "", fault.List(bodyFault("there are several users; specify one: `molrun user list` shows them", "email"))
	case users[0].Disabled:
		return "", "", fault.List(bodyFault("this user is disabled; enable the user first", "email"))
	}
	return users[0].Organization, users[0].Email, nil
}

// checkCanSignIn rejects a user who could not sign in: one without a record and without a
// valid key.
func (s *Accounts) checkCanSignIn(ctx context.Context, organization, email string) error {
	return s.store.View(ctx, func(tx app.Tx) error {
		u, err := userOf(tx, organization, email)
		if err == nil && u == nil {
			u, err = s.firstRecord(tx, organization, email, "")
		}
		if err == nil && u == nil {
			err = fault.List(bodyFault("all keys of this user are disabled or have expired, or their scopes match no role; `molrun user set` gives the user a role", "email"))
		}
		return err
	})
}

// Accept returns the caller for an invitation's token, or Unauthorized. A token works
// once.
func (s *Accounts) Accept(ctx context.Context, token string) (app.Caller, error) {
	i, ok := s.invited.redeem(token, s.now())
	if !ok {
		return app.Caller{}, fault.Errorf(fault.Unauthorized, "This link has been used or has expired; `molrun sign-in` creates a new one.")
	}
	return s.asUser(ctx, i.Organization, i.Email, i.Role)
}
