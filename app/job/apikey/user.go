package apikey

import "molrun/app/base/unit"

// User is what was decided about a user: it limits all of the user's keys. A user
// about whom nothing was decided has no record.
type User struct {
	Organization string    `json:"organization"`
	Email        string    `json:"email"`
	Role         Role      `json:"role"`
	Disabled     bool      `json:"disabled,omitempty"`
	CreatedAt    unit.Time `json:"createdAt"`
	LastUsedAt   unit.Time `json:"lastUsedAt,omitzero"` // when a proxy last signed in the user; stored with the same delay
}

// Under returns the key as limited by the record of its user, which may be nil.
func (k *Key) Under(u *User) *Key {
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
