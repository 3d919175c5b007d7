package blobs

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"molrun/app/fault"
)

// maxKeys bounds the ring: every request may name any key of it.
const maxKeys = 64

// RotateSecret makes a new key, which signs from now on, and gives its id.
// Older keys still verify as long as a link made with them can live, then they
// go with the next rotation.
func (d *Dir) RotateSecret() (kid string, err error) {
	d.rotating.Lock()
	defer d.rotating.Unlock()
	s, err := readSecret(filepath.Join(d.path, secretName))
	if err != nil {
		return "", fmt.Errorf("rotate secret: %w", err)
	}
	next := s.rotated(d.options.Now())
	if len(next.Keys) > maxKeys {
		return "", fault.Errorf(fault.Invalid, "there are %d keys already, since links live up to a week; rotate again when the oldest are no longer needed", maxKeys)
	}
	if err := next.write(d.path); err != nil {
		return "", diskError("rotate secret", err)
	}
	d.links.Store(newLinks(next, d.options.Now))
	return next.newest().ID, nil
}

// rotated gives the ring with one more key and without those that no link can
// name any more. A key signed until the next one was made.
func (s *Secret) rotated(now time.Time) *Secret {
	now = now.UTC().Truncate(time.Millisecond)
	if newest := s.newest().CreatedAt; !now.After(newest) { // the clock was set back
		now = newest.Add(time.Millisecond)
	}
	keys := slices.Clone(s.Keys)
	slices.SortStableFunc(keys, func(a, b SecretKey) int { return a.CreatedAt.Compare(b.CreatedAt) })
	next := &Secret{StoreID: s.StoreID}
	for i, k := range keys {
		until := now
		if i+1 < len(keys) {
			until = keys[i+1].CreatedAt
		}
		if now.Sub(until) <= MaxLinkLife+leeway {
			next.Keys = append(next.Keys, k)
		}
	}
	next.Keys = append(next.Keys, newSecretKey(now))
	return next
}

func newSecretKey(now time.Time) SecretKey {
	key := make([]byte, keySize)
	rand.Read(key) // never fails (crypto/rand)
	return SecretKey{ID: rand.Text()[:8], Key: key, CreatedAt: now}
}

// write replaces the file in the data directory, whole or not at all.
func (s *Secret) write(dir string) (err error) {
	name, err := s.stage(dir)
	if err != nil {
		return err
	}
	if err := os.Rename(name, filepath.Join(dir, secretName)); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	return errors.Join(syncDir(root, "."), root.Close())
}

// stage writes the ring to a new file of mode 0600 and gives its name.
func (s *Secret) stage(dir string) (name string, err error) {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, ".secret.*") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(append(data, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}
