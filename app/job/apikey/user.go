package apikey

import "molrun/app/base/unit"

// User is the record of an admin's decisions about a user, which limits all of the user's
// keys. A user without such decisions has no record.
type User struct {
	Organization string    `json:"organization"`
	Email        string    `json:"email"`
	Role         Role      `json:"role"`
	Disabled     bool      `json:"disabled,omitempty"`
	CreatedAt    unit.Time `json:"createdAt"`
	LastUsedAt   unit.Time `json:"lastUsedAt,omitzero"` // last use without a key; stored up to a minute late
}

// LimitedBy returns the key as limited by the record of its user, which can be nil.
func (k *Key) LimitedBy(u *User) *Key {
	limited := *k
	if u == nil {
		return &limited
	}
	limited.Disabled = k.Disabled || u.Disabled
	if !u.Role.Rights().Has(k.Role.Rights()) {
		limited.Role = u.Role
	}
	return &limited
}
