package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// User is a user who has an API key or whom an administrator has configured.
type User struct {
	Organization string    `json:"organization"`
	Email        string    `json:"email"`
	Role         string    `json:"role"`
	Disabled     bool      `json:"disabled"`
	CreatedAt    time.Time `json:"createdAt"`
	LastUsedAt   time.Time `json:"lastUsedAt,omitzero"` // accurate to a minute or two
	Keys         int       `json:"keys"`
	Jobs         int       `json:"jobs"`
}

// Users lists the users of all organizations.
func (c *Control) Users(ctx context.Context) ([]User, error) {
	out, err := requestJSON[struct {
		Users []User `json:"users"`
	}](ctx, c.client, http.MethodGet, "/control/users", nil, nil)
	if err != nil {
		return nil, err
	}
	return out.Users, nil
}

// UserChange describes changes to a user; empty fields are left unchanged.
type UserChange struct {
	Role     string `json:"role,omitempty"`
	Disabled *bool  `json:"disabled,omitempty"`
}

// ChangeUser changes a user, or creates it if it does not exist.
func (c *Control) ChangeUser(ctx context.Context, organization, email string, change UserChange) (*User, error) {
	return requestJSON[User](ctx, c.client, http.MethodPatch, path("control", "users", email), url.Values{"organization": {organization}}, change)
}

// DeleteUser deletes a user with all keys. Jobs and uploads are kept.
func (c *Control) DeleteUser(ctx context.Context, organization, email string) error {
	return c.client.call(ctx, http.MethodDelete, path("control", "users", email), url.Values{"organization": {organization}}, nil, nil)
}
