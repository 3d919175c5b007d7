package link

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

	"molrun/app/base/durable"
)

// SecretName is the name of the secret's file in the data directory.
const SecretName = "secret"

const keySize = 32

// Secret holds the name of the service as an issuer of links, and its key ring. The
// newest key signs. Older keys still verify until the longest-lived link signed with them
// has expired.
type Secret struct {
	StoreID string      `json:"storeId"`
	Keys    []SecretKey `json:"keys"`
	// Revoked lists holders whose links are revoked.
	Revoked []Revocation `json:"revoked,omitempty"`
}

// SecretKey is one key of the ring. It never signs anything itself: a separate key is
// derived from it for each purpose.
type SecretKey struct {
	ID        string    `json:"kid"`
	Key       []byte    `json:"key"` // 32 random bytes; base64 in the file
	CreatedAt time.Time `json:"createdAt"`
}

// LoadSecret reads the secret of the data directory, creating it if missing. It rejects a
// file that others can read and keys that are too weak.
func LoadSecret(dir string) (*Secret, error) {
	s, err := readSecret(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = createSecret(dir); err == nil {
			s, err = readSecret(dir)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("load secret: %w", err)
	}
	return s, nil
}

// CheckSecret returns the error that LoadSecret would return for the secret of the data
// directory, without creating one.
func CheckSecret(dir string) error {
	_, err := readSecret(dir)
	return err
}

func readSecret(dir string) (*Secret, error) {
	name := filepath.Join(dir, SecretName)
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
		return nil, fmt.Errorf("%s is accessible by others (mode %#o): run chmod 600 on it", name, perm)
	}
	var s Secret
	err = json.NewDecoder(f).Decode(&s)
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s is damaged, restore it from a backup: %w", name, err)
	}
	return &s, nil
}

func (s *Secret) check() error {
	if s.StoreID == "" || len(s.Keys) == 0 {
		return errors.New("storeId or keys are missing")
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

// createSecret creates the file unless another process already has. It links the file to
// its name because a link, unlike a rename, never replaces a file.
func createSecret(dir string) (err error) {
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	data, err := newSecret().encode()
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	staged, err := durable.Stage(root, SecretName, data)
	if err != nil {
		return err
	}
	err = root.Link(staged, SecretName)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, root.Remove(staged), durable.SyncDir(root, "."))
}

func newSecret() *Secret {
	return &Secret{
		StoreID: rand.Text(),
		Keys:    []SecretKey{newSecretKey(time.Now().UTC().Truncate(time.Second))},
	}
}

func newSecretKey(now time.Time) SecretKey {
	key := make([]byte, keySize)
	rand.Read(key) // never fails (crypto/rand)
	return SecretKey{ID: rand.Text()[:8], Key: key, CreatedAt: now}
}

// encode returns the content of the secret's file.
func (s *Secret) encode() ([]byte, error) {
	data, err := json.MarshalIndent(s, "", "  ")
	return append(data, '\n'), err
}

// Derive returns 32 bytes for one purpose, derived from the newest key.
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
		panic("link: derive key: " + err.Error()) // fails only for an invalid size
	}
	return key
}
