package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"math/big"
	"strings"
	"time"

	"molrun/app/fault"
	"molrun/app/routing"
	"molrun/app/unit"
)

// Role says what a key's user may do in the organization.
type Role string

// The roles. An admin may cancel, retry and delete what others submitted.
const (
	RoleMember Role = "member"
	RoleAdmin  Role = "admin"
)

// Caller is who asks: the user of an API key.
type Caller struct {
	KeyID        string
	Organization string
	Email        string
	Role         Role
}

// routed gives the caller as routing rules see them.
func (c Caller) routed() routing.User {
	return routing.User{Organization: c.Organization, Email: c.Email}
}

// May reports whether the caller may change what belongs to owner.
func (c Caller) May(owner string) bool { return c.Role == RoleAdmin || c.Email == owner }

// APIKey is the record of a key. The secret itself is shown once and only
// its SHA-256 is kept.
type APIKey struct {
	ID           string    `json:"id"` // 12 letters
	Hash         string    `json:"hash"`
	Organization string    `json:"organization"`
	Email        string    `json:"email"`
	Role         Role      `json:"role"`
	Disabled     bool      `json:"disabled,omitempty"`
	CreatedAt    unit.Time `json:"createdAt"`
	ExpiresAt    unit.Time `json:"expiresAt,omitzero"`
	LastUsedAt   unit.Time `json:"lastUsedAt,omitzero"` // written a minute later at most
	Successor    string    `json:"successor,omitempty"` // id of the key that RotateKey made of it
}

// live reports whether the key opens anything at the moment now.
func (k *APIKey) live(now time.Time) bool {
	return !k.Disabled && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt.Time))
}

// The form of a key: molrun_<id>_<secret>_<crc>. The secret holds 256 random
// bits; the checksum tells a mistyped key without a look at the database.
const (
	keyPrefix    = "molrun"
	keyIDLength  = 12
	secretLength = 43
	crcLength    = 6
	base62       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// newKey makes a key and its parts.
func newKey() (key, id, secret string) {
	letters := make([]byte, keyIDLength)
	for i := range letters {
		n, _ := rand.Int(rand.Reader, big.NewInt(26)) // never fails (crypto/rand)
		letters[i] = 'a' + byte(n.Int64())
	}
	random := make([]byte, 32)
	rand.Read(random)
	id, secret = string(letters), base62Text(new(big.Int).SetBytes(random), secretLength)
	body := keyPrefix + "_" + id + "_" + secret
	return body + "_" + keyChecksum(body), id, secret
}

func keyChecksum(body string) string {
	return base62Text(new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(body)))), crcLength)
}

func base62Text(n *big.Int, length int) string {
	text := make([]byte, length)
	rest, base := new(big.Int), big.NewInt(62)
	for i := length - 1; i >= 0; i-- {
		n.DivMod(n, base, rest)
		text[i] = base62[rest.Int64()]
	}
	return string(text)
}

// splitKey gives the parts of a well-formed key.
func splitKey(key string) (id, secret string, ok bool) {
	parts := strings.Split(key, "_")
	if len(parts) != 4 || parts[0] != keyPrefix || len(parts[1]) != keyIDLength || len(parts[2]) != secretLength {
		return "", "", false
	}
	return parts[1], parts[2], parts[3] == keyChecksum(strings.Join(parts[:3], "_"))
}

// KeyID gives the id within a well-formed key, "" for anything else.
func KeyID(key string) string {
	id, _, ok := splitKey(key)
	if !ok || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz") != "" {
		return ""
	}
	return id
}

func secretHash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// errUnauthorized is the one answer to every key that opens nothing, whatever
// the reason.
var errUnauthorized = &fault.Error{
	Code:    fault.Unauthorized,
	Message: "Send a valid API key in x-api-key; an administrator makes one with `molrun key create`.",
}

// Authenticate tells whose key this is, or Unauthorized.
func (s *Service) Authenticate(ctx context.Context, key string) (Caller, error) {
	id, secret, ok := splitKey(key)
	if !ok {
		return Caller{}, errUnauthorized
	}
	k, err := s.keyOf(ctx, id)
	if err != nil {
		return Caller{}, err
	}
	same := subtle.ConstantTimeCompare([]byte(secretHash(secret)), []byte(k.Hash)) == 1
	if !same || !k.live(s.now()) {
		return Caller{}, errUnauthorized
	}
	s.uses.note(k.ID, s.now())
	return Caller{KeyID: k.ID, Organization: k.Organization, Email: k.Email, Role: k.Role}, nil
}

// keyOf gives the record of a key. One that does not exist opens nothing, and is
// compared all the same, so that time tells nothing.
func (s *Service) keyOf(ctx context.Context, id string) (*APIKey, error) {
	k, changes := s.keys.find(id)
	if k != nil {
		return k, nil
	}
	err := s.store.View(ctx, func(tx Tx) (err error) {
		k, err = tx.Key(id)
		return err
	})
	switch {
	case errors.Is(err, fault.NotFound):
		return &APIKey{Hash: secretHash(""), Disabled: true}, nil
	case err != nil:
		return nil, err
	}
	s.keys.keep(k, changes)
	return k, nil
}

// KeyRequest asks for a key; Expires 0 is never.
type KeyRequest struct {
	Organization, Email string
	Role                Role
	Expires             time.Duration
}

// CreateKey makes a key. The key itself is in the answer and nowhere else.
func (s *Service) CreateKey(ctx context.Context, r KeyRequest) (key string, rec *APIKey, err error) {
	if err := checkKeyRequest(r); err != nil {
		return "", nil, err
	}
	key, id, secret := newKey()
	rec = &APIKey{
		ID:           id,
		Hash:         secretHash(secret),
		Organization: r.Organization,
		Email:        strings.ToLower(r.Email),
		Role:         r.Role,
		CreatedAt:    unit.At(s.now()),
	}
	if r.Expires > 0 {
		rec.ExpiresAt = unit.At(s.now().Add(r.Expires))
	}
	err = s.store.Update(ctx, func(tx Tx) error { return tx.PutKey(rec) })
	return key, rec, err
}

func checkKeyRequest(r KeyRequest) error {
	var faults []fault.Field
	add := func(member, msg string) {
		if msg != "" {
			faults = append(faults, fault.Field{Loc: []any{"body", member}, Msg: msg, Type: "value"})
		}
	}
	add("organization", CheckName(r.Organization))
	add("email", CheckEmail(r.Email))
	if r.Role != RoleMember && r.Role != RoleAdmin {
		add("role", "use member or admin")
	}
	if r.Expires < 0 {
		add("expires", "use a time ahead, such as 90d")
	}
	return fault.List(faults...)
}

// Keys lists all keys, oldest first.
func (s *Service) Keys(ctx context.Context) (keys []*APIKey, err error) {
	err = s.store.View(ctx, func(tx Tx) (err error) {
		keys, err = tx.Keys()
		return err
	})
	return keys, err
}

// DisableKey closes a key or opens it again; it takes effect at once.
func (s *Service) DisableKey(ctx context.Context, id string, disabled bool) (k *APIKey, err error) {
	defer s.keys.forget()
	err = s.store.Update(ctx, func(tx Tx) (err error) {
		if k, err = keyNamed(tx, id); err != nil {
			return err
		}
		k.Disabled = disabled
		return tx.PutKey(k)
	})
	return k, err
}

// DeleteKey removes a key for ever.
func (s *Service) DeleteKey(ctx context.Context, id string) error {
	defer s.keys.forget()
	return s.store.Update(ctx, func(tx Tx) error {
		if _, err := keyNamed(tx, id); err != nil {
			return err
		}
		return tx.DeleteKey(id)
	})
}

func keyNamed(tx Tx, id string) (*APIKey, error) {
	k, err := tx.Key(id)
	if errors.Is(err, fault.NotFound) {
		return nil, fault.Errorf(fault.NotFound, "there is no key %q; `molrun key list` shows them", id)
	}
	return k, err
}
