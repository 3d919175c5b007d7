package blobs

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	secretName = "secret"
	keySize    = 32
)

// Secret is what only this service knows: its name as an issuer of links and
// a ring of keys. The newest key signs; older ones still verify, so a key may
// go once the longest link made with it has expired.
type Secret struct {
	StoreID string      `json:"storeId"`
	Keys    []SecretKey `json:"keys"`
}

// SecretKey is one key of the ring. The key itself is never used: what signs
// is derived from it, for one purpose each.
type SecretKey struct {
	ID        string    `json:"kid"`
	Key       []byte    `json:"key"` // 32 random bytes; base64 in the file
	CreatedAt time.Time `json:"createdAt"`
}

// LoadSecret reads the file named secret in the data directory, and makes it
// where there is none. It refuses a file that others may read and keys that
// are too short to be random.
func LoadSecret(dir string) (*Secret, error) {
	name := filepath.Join(dir, secretName)
	s, err := readSecret(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err = createSecret(dir, name); err == nil {
			s, err = readSecret(name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("load secret: %w", err)
	}
	return s, nil
}

// Derive gives 32 bytes for one purpose, from the newest key.
func (s *Secret) Derive(purpose string) []byte { return s.newest().derive(s.StoreID, purpose) }

func (s *Secret) newest() SecretKey {
	newest := s.Keys[0]
	for _, k := range s.Keys[1:] {
		if !k.CreatedAt.Before(newest.CreatedAt) {
			newest = k
		}
	}
	return newest
}

func (k SecretKey) derive(storeID, purpose string) []byte {
	key, err := hkdf.Key(sha256.New, k.Key, []byte(storeID), purpose, keySize)
	if err != nil {
		panic("blobs: derive key: " + err.Error()) // only a wrong size can do that
	}
	return key
}

func readSecret(name string) (*Secret, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return nil, fmt.Errorf("%s may be read or changed by others (mode %#o): run chmod 600 on it", name, perm)
	}
	var s Secret
	if err := json.NewDecoder(f).Decode(&s); err != nil {
		return nil, fmt.Errorf("%s is damaged, restore it from a backup: %w", name, err)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("%s is damaged, restore it from a backup: %w", name, err)
	}
	return &s, nil
}

func (s *Secret) check() error {
	if s.StoreID == "" || len(s.Keys) == 0 {
		return errors.New("it lacks storeId or keys")
	}
	seen := make(map[string]bool)
	for _, k := range s.Keys {
		switch {
		case k.ID == "" || seen[k.ID]:
			return fmt.Errorf("kid %q is empty or occurs twice", k.ID)
		case len(k.Key) != keySize:
			return fmt.Errorf("key %q has %d bytes instead of %d", k.ID, len(k.Key), keySize)
		case string(k.Key) == string(make([]byte, keySize)):
			return fmt.Errorf("key %q is all zeros", k.ID)
		}
		seen[k.ID] = true
	}
	return nil
}

// createSecret makes the file unless another process was faster: the name is
// given by a link, which never replaces.
func createSecret(dir, name string) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	staged, err := newSecret().stage(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(staged)) }()
	if err := os.Link(staged, name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	return errors.Join(syncDir(root, "."), root.Close())
}

func newSecret() *Secret {
	return &Secret{
		StoreID: rand.Text(),
		Keys:    []SecretKey{newSecretKey(time.Now().UTC().Truncate(time.Second))},
	}
}
