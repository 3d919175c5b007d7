// Package apikey defines API keys: their form, their records with what these allow,
// and a cache of the records in use.
package apikey

import (
	"net/netip"
	"slices"
	"time"

	"molrun/app/base/unit"
)

// Key is the record of an API key. The secret is shown once; only its SHA-256 is
// stored.
type Key struct {
	ID           string         `json:"id"` // 12 letters
	Hash         string         `json:"hash"`
	Organization string         `json:"organization"`
	Email        string         `json:"email"`
	Role         Role           `json:"role"`
	Scopes       []Scope        `json:"scopes,omitempty"`   // none: all that the role allows
	Networks     []netip.Prefix `json:"networks,omitempty"` // of its clients; none: everywhere
	Name         string         `json:"name,omitempty"`
	Disabled     bool           `json:"disabled,omitempty"`
	CreatedAt    unit.Time      `json:"createdAt"`
	MadeBy       string         `json:"madeBy,omitempty"` // id of the key that made it; "": the operator
	ExpiresAt    unit.Time      `json:"expiresAt,omitzero"`
	LastUsedAt   unit.Time      `json:"lastUsedAt,omitzero"` // stored with a delay of up to a minute
	Successor    string         `json:"successor,omitempty"` // id of the key that replaces it
}

// Rights returns what the key allows: of what its role allows, what its scopes name.
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

// Admits reports whether the key may be used from an address.
func (k *Key) Admits(from netip.Addr) bool {
	return len(k.Networks) == 0 || slices.ContainsFunc(k.Networks, func(n netip.Prefix) bool { return n.Contains(from) })
}

// Live reports whether the key is valid at this time.
func (k *Key) Live(now time.Time) bool {
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
