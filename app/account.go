package app

import "time"

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

// May reports whether the caller may change what belongs to owner.
func (c Caller) May(owner string) bool { return c.Role == RoleAdmin || c.Email == owner }

// APIKey is the record of a key. The secret itself is shown once and only
// its SHA-256 is kept.
type APIKey struct {
	ID           string `json:"id"` // 12 letters
	Hash         string `json:"hash"`
	Organization string `json:"organization"`
	Email        string `json:"email"`
	Role         Role   `json:"role"`
	Disabled     bool   `json:"disabled,omitempty"`
	CreatedAt    Time   `json:"createdAt"`
	ExpiresAt    Time   `json:"expiresAt,omitzero"`
}

// live reports whether the key opens anything at the moment now.
func (k *APIKey) live(now time.Time) bool {
	return !k.Disabled && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt.Time))
}
