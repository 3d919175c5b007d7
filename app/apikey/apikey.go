// Package apikey defines API keys: their form, their records, and a cache of the
// records in use.
package apikey

import (
	"time"

	"molrun/app/unit"
)

// The roles. An admin may cancel, retry and delete what others submitted.
const (
	Member Role = "member"
	Admin  Role = "admin"
)

// Role is what the user of a key may do in the organization.
type Role string

// Key is the record of an API key. The secret is shown once; only its SHA-256 is
// stored.
type Key struct {
	ID           string    `json:"id"` // 12 letters
	Hash         string    `json:"hash"`
	Organization string    `json:"organization"`
	Email        string    `json:"email"`
	Role         Role      `json:"role"`
	Disabled     bool      `json:"disabled,omitempty"`
	CreatedAt    unit.Time `json:"createdAt"`
	ExpiresAt    unit.Time `json:"expiresAt,omitzero"`
	LastUsedAt   unit.Time `json:"lastUsedAt,omitzero"` // stored with a delay of up to a minute
	Successor    string    `json:"successor,omitempty"` // id of the key that replaces it
}

// Live reports whether the key is valid at this time.
func (k *Key) Live(now time.Time) bool {
	return !k.Disabled && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt.Time))
}

// Renew returns the record of a key that replaces this one.
func (k *Key) Renew(id, hash string, now time.Time) *Key {
	next := &Key{
		ID: id, Hash: hash, Organization: k.Organization, Email: k.Email, Role: k.Role, CreatedAt: unit.At(now),
	}
	if !k.ExpiresAt.IsZero() {
		next.ExpiresAt = unit.At(now.Add(k.ExpiresAt.Sub(k.CreatedAt.Time)))
	}
	return next
}
