package client

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Control calls the operator's routes on the control socket. No key is
// wanted there: who may open the socket is the operator.
type Control struct{ http *http.Client }

// NewControl gives a client that connects by dial.
func NewControl(dial func(context.Context) (net.Conn, error)) *Control {
	return &Control{&http.Client{Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DisableKeepAlives: true, // a command makes one call
	}}}
}

func (c *Control) call(ctx context.Context, method, path string, body, answer any) error {
	return exchange(ctx, c.http, method, "http://control"+path, "", body, answer)
}

// KeyRequest asks for a key; ExpiresSeconds 0 is never.
type KeyRequest struct {
	Organization   string `json:"organization"`
	Email          string `json:"email"`
	Role           string `json:"role,omitempty"`
	ExpiresSeconds int64  `json:"expiresSeconds,omitempty"`
}

// Key is the record of an API key.
type Key struct {
	ID           string    `json:"id"`
	Organization string    `json:"organization"`
	Email        string    `json:"email"`
	Role         string    `json:"role"`
	Disabled     bool      `json:"disabled"`
	CreatedAt    time.Time `json:"createdAt"`
	ExpiresAt    time.Time `json:"expiresAt,omitzero"`
}

// NewKey is a key that was just made: the only time that it is shown.
type NewKey struct {
	Key
	Secret string `json:"key"`
}

// CreateKey makes a key.
func (c *Control) CreateKey(ctx context.Context, r KeyRequest) (*NewKey, error) {
	var key NewKey
	return &key, c.call(ctx, http.MethodPost, "/control/keys", r, &key)
}

// Keys lists all keys.
func (c *Control) Keys(ctx context.Context) ([]Key, error) {
	var list struct {
		Keys []Key `json:"keys"`
	}
	err := c.call(ctx, http.MethodGet, "/control/keys", nil, &list)
	return list.Keys, err
}

// DisableKey closes a key.
func (c *Control) DisableKey(ctx context.Context, id string) (*Key, error) {
	var key Key
	return &key, c.call(ctx, http.MethodPost, keyPath(id)+"/disable", nil, &key)
}

// EnableKey opens a key again.
func (c *Control) EnableKey(ctx context.Context, id string) (*Key, error) {
	var key Key
	return &key, c.call(ctx, http.MethodPost, keyPath(id)+"/enable", nil, &key)
}

// DeleteKey removes a key.
func (c *Control) DeleteKey(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, keyPath(id), nil, nil)
}

func keyPath(id string) string { return "/control/keys/" + url.PathEscape(id) }
