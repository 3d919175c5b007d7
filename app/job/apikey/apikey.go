// Package apikey defines API keys: their format, their records and rights, and a cache of
// the records in use.
package apikey

import (
	"net/netip"
	"slices"
	"time"

	"molrun/app/base/unit"
)

// Key is the record of an API key. The secret is shown once; only its SHA-256 hash is
// stored.
type Key struct {
	ID           string         `json:"id"` // 12 letters
	Hash         string         `json:"hash"`
	Organization string         `json:"organization"`
	Email        string         `json:"email"`
	Role         Role           `json:"role"`
	Scopes       []Scope        `json:"scopes,omitempty"`   // empty means all that the role allows
	Networks     []netip.Prefix `json:"networks,omitempty"` // client networks; empty means any
	Name         string         `json:"name,omitempty"`
	Disabled     bool           `json:"disabled,omitempty"`
	CreatedAt    unit.Time      `json:"createdAt"`
	MadeBy       string         `json:"madeBy,omitempty"` // ID of the key that created it; "" means the operator
	ExpiresAt    unit.Time      `json:"expiresAt,omitzero"`
	LastUsedAt   unit.Time      `json:"lastUsedAt,omitzero"` // stored up to a minute late
	Successor    string         `json:"successor,omitempty"` // ID of the key that replaces it
}

// Rights returns the rights of the role, restricted to the scopes if there are any.
func (k *Key) Rights() Rights {
	if len(k.Scopes) == 0 {
		return k.Role.Rights()
	}
	var scopes Rights
	for _, s := range k.Scopes {
		scopes |= s.Rights()
	}
	return k.Role.Rights() & scopes
}

// Admits reports whether the key can be used from an address.
func (k *Key) Admits(from netip.Addr) bool {
	return len(k.Networks) == 0 || slices.ContainsFunc(k.Networks, func(n netip.Prefix) bool { return n.Contains(from) })
}

// Valid reports whether the key is valid at a given time.
func (k *Key) Valid(now time.Time) bool {
	return !k.Disabled && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt.Time))
}

// Renew returns the record of a key that replaces this one.
func (k *Key) Renew(id, hash string, now time.Time) *Key {
	next := *k
	next.ID, next.Hash, next.CreatedAt = id, hash, unit.At(now)
	next.LastUsedAt, next.Successor = unit.Time{}, ""
	if !k.ExpiresAt.IsZero() {
		next.ExpiresAt = unit.At(now.Add(k.ExpiresAt.Sub(k.CreatedAt.Time)))
	}
	return &next
}
