package link

import (
	"slices"
	"time"
)

// Revocation invalidates all links issued to a holder until a time.
type Revocation struct {
	Holder string    `json:"holder"`
	At     time.Time `json:"at"`
}

// Revoke permanently invalidates all links issued to a holder so far.
func (s *Signer) Revoke(holder string) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	secret, err := readSecret(s.dir)
	if err != nil {
		return err
	}
	next := secret.revoked(holder, s.now())
	if err := next.replace(s.dir); err != nil {
		return err
	}
	s.ring.Store(newRing(next, s.now))
	return nil
}

// revoked returns the secret with one more revocation and without those whose links have
// all expired.
func (s *Secret) revoked(holder string, now time.Time) *Secret {
	next := *s
	next.Revoked = slices.DeleteFunc(slices.Clone(s.Revoked), func(r Revocation) bool {
		return r.Holder == holder || now.Sub(r.At) > MaxLifetime+leeway
	})
	next.Revoked = append(next.Revoked, Revocation{holder, now.UTC()})
	return &next
}

// revocations returns the times at which the links of holders were revoked, by every
// pseudonym that unexpired links can contain.
func (s *Secret) revocations() map[string]time.Time {
	all := map[string]time.Time{}
	for _, k := range s.Keys {
		key := k.derive(s.StoreID, holderPurpose)
		for _, r := range s.Revoked {
			all[pseudonym(key, r.Holder)] = r.At
		}
	}
	return all
}

// revokes reports whether a link was issued before its holder's links were revoked.
func (r *ring) revokes(c *claims) bool {
	at, revoked := r.revoked[c.Holder]
	return revoked && !c.IssuedAt.Add(time.Duration(c.Milliseconds)*time.Millisecond).After(at)
}
