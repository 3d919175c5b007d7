package link

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"molrun/app/base/fault"
	"molrun/app/test/must"
)

// loadSigner returns a signer for the secret of a new directory.
func loadSigner(t testing.TB) (*Signer, *clock) {
	t.Helper()
	c := newClock()
	s := &Signer{dir: t.TempDir()}
	return NewSigner(s.dir, stored(t, s), c.Now), c
}

// rotate creates a new key and checks the resulting number of keys in the file.
func rotate(t testing.TB, s *Signer, want int) (kid string) {
	t.Helper()
	kid, err := s.Rotate()
	must.OK(t, err)
	if secret := stored(t, s); len(secret.Keys) != want || secret.newest().ID != kid {
		t.Errorf("%d keys, newest %q; want %d, newest %q", len(secret.Keys), secret.newest().ID, want, kid)
	}
	return kid
}

// stored returns the secret in a signer's directory.
func stored(t testing.TB, s *Signer) *Secret {
	t.Helper()
	secret, err := LoadSecret(s.dir)
	must.OK(t, err)
	return secret
}

func TestRotatedKeySignsAndOldLinksStillWork(t *testing.T) {
	s, c := loadSigner(t)
	before := getLink(s, MaxLifetime)
	kid := rotate(t, s, 2)
	verify(t, s, "link signed before", "GET", before, "")
	verify(t, s, "link signed after", "GET", getLink(s, MaxLifetime), "")
	must.Equal(t, "the key that signs", s.ring.Load().kid, kid)
	if info, err := os.Stat(filepath.Join(s.dir, SecretName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	c.move(MaxLifetime + time.Minute)
	verify(t, s, "old link after its time", "GET", before, fault.LinkExpired)
}

func TestRotationDropsKeysThatNoLinkCanName(t *testing.T) {
	s, c := loadSigner(t)
	c.move(time.Since(c.Now()) + time.Hour) // after the first key was created
	rotate(t, s, 2)
	c.move(MaxLifetime)
	rotate(t, s, 3) // a link of the first key might still be valid
	c.move(2 * leeway)
	rotate(t, s, 3) // the first key's links have expired, the second key's have not
	c.move(2 * MaxLifetime)
	rotate(t, s, 2)
	c.move(-48 * time.Hour) // setting the clock back must not make an old key sign again
	must.Equal(t, "after the clock was set back", rotate(t, s, 3), s.ring.Load().kid)
}

func TestKeyRingIsBounded(t *testing.T) {
	s, _ := loadSigner(t)
	for i := range maxKeys - 1 {
		rotate(t, s, i+2)
	}
	if _, err := s.Rotate(); !errors.Is(err, fault.Invalid) {
		t.Errorf("one more: %v, want INVALID", err)
	}
	must.Equal(t, "keys", len(stored(t, s).Keys), maxKeys)
}

func TestFailedRotationKeepsTheSecret(t *testing.T) {
	s, _ := loadSigner(t)
	link := getLink(s, time.Hour)
	must.OK(t, os.Chmod(filepath.Join(s.dir, SecretName), 0o644))
	if _, err := s.Rotate(); err == nil {
		t.Error("rotated a secret that others can read")
	}
	verify(t, s, "link after the failure", "GET", link, "")
}

func TestReadingAndWritingHaveDifferentKeys(t *testing.T) {
	s, _ := newSigner(t)
	r := s.ring.Load()
	for kid, key := range r.get.keys {
		if string(key) == string(r.put.keys[kid]) {
			t.Errorf("key %s is the same for both", kid)
		}
	}
}

func TestRotationNowEndsAllLinks(t *testing.T) {
	s, _ := loadSigner(t)
	rotate(t, s, 2)
	before := getLink(s, MaxLifetime)
	must.OK(t, must.Error2(s.RotateNow()))
	must.Equal(t, "keys that are left", len(stored(t, s).Keys), 1)
	verify(t, s, "link signed before", "GET", before, fault.LinkInvalid)
	verify(t, s, "link signed after", "GET", getLink(s, MaxLifetime), "")
}
