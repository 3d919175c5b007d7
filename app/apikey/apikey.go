// Package apikey is API keys: their form, their records, and what is kept of them
// in memory.
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

// Role says what a key's user may do in the organization.
type Role string

// APIKey is the record of a key. The secret itself is shown once and only
// its SHA-256 is kept.
type Key struct {
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
func (k *Key) Live(now time.Time) bool {
	return !k.Disabled && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt.Time))
}

// Renew gives the record of a key that takes this one's place.
func (k *Key) Renew(id, hash string, now time.Time) *Key {
	next := &Key{
		ID: id, Hash: hash, Organization: k.Organization, Email: k.Email, Role: k.Role, CreatedAt: unit.At(now),
	}
	if !k.ExpiresAt.IsZero() {
		next.ExpiresAt = unit.At(now.Add(k.ExpiresAt.Sub(k.CreatedAt.Time)))
	}
	return next
}
