package link

import (
	"errors"
	"os"
	"slices"
	"time"

	"molrun/app/base/durable"
	"molrun/app/base/fault"
)

// maxKeys limits the ring, because a request can select any of its keys.
const maxKeys = 64

// Rotate adds a key to the secret's file, signs with it from now on and returns its ID.
// Older keys still verify links for as long as some of theirs might be unexpired. The
// first rotation after that drops them.
func (s *Signer) Rotate() (kid string, err error) { return s.rotate((*Secret).rotated) }

// RotateNow is Rotate, but drops all older keys, which invalidates all links.
func (s *Signer) RotateNow() (kid string, err error) { return s.rotate((*Secret).renewed) }

func (s *Signer) rotate(change func(*Secret, time.Time) *Secret) (kid string, err error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	secret, err := readSecret(s.dir)
	if err != nil {
		return "", err
	}
	next := change(secret, s.now())
	if len(next.Keys) > maxKeys {
		return "", fault.Errorf(fault.Invalid, "there are already %d keys, since links are valid for up to a week; rotate again when the oldest have expired", maxKeys)
	}
	if err := next.replace(s.dir); err != nil {
		return "", err
	}
	s.ring.Store(newRing(next, s.now))
	return next.newest().ID, nil
}

// rotated returns the secret with one more key and without the keys that no unexpired
// link can use. A key signs links until the next one is created.
func (s *Secret) rotated(now time.Time) *Secret {
	now = now.UTC().Truncate(time.Millisecond)
	if newest := s.newest().CreatedAt; !now.After(newest) { // the clock was set back
		now = newest.Add(time.Millisecond)
	}
	keys := slices.Clone(s.Keys)
	slices.SortStableFunc(keys, func(a, b SecretKey) int { return a.CreatedAt.Compare(b.CreatedAt) })
	next := &Secret{StoreID: s.StoreID, Revoked: s.Revoked}
	for i, k := range keys {
		until := now
		if i+1 < len(keys) {
			until = keys[i+1].CreatedAt
		}
		if now.Sub(until) <= MaxLifetime+leeway {
			next.Keys = append(next.Keys, k)
		}
	}
	next.Keys = append(next.Keys, newSecretKey(now))
	return next
}

// renewed returns the secret with only a new key.
func (s *Secret) renewed(now time.Time) *Secret {
	all := s.rotated(now)
	return &Secret{StoreID: s.StoreID, Keys: all.Keys[len(all.Keys)-1:]}
}

// replace overwrites the secret's file in the data directory.
func (s *Secret) replace(dir string) error {
	data, err := s.encode()
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	return errors.Join(durable.Replace(root, SecretName, data), root.Close())
}
