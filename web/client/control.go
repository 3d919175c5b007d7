package client

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// Control talks to a service on this machine through its control socket. It has
// the operator's rights.
type Control struct{ client *Client }

// NewControl returns a client of the control socket at path.
func NewControl(path string) *Control {
	return &Control{NewWith("http://molrun", "", &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return DialControl(ctx, path)
		},
		DisableKeepAlives: true, // a command sends a request or two
	})}
}

// DialControl connects to the control socket at path. The path may be longer
// than the 107 bytes that a socket address holds.
func DialControl(ctx context.Context, path string) (net.Conn, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	dialer := net.Dialer{Timeout: 10 * time.Second}
	return dialer.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
}

// KeyRequest asks for an API key. Role "" means member; Expires 0 means never.
type KeyRequest struct {
	Organization, Email, Role string
	Expires                   time.Duration
}

// Key is an API key without its secret.
type Key struct {
	ID           string    `json:"id"`
	Organization string    `json:"organization"`
	Email        string    `json:"email"`
	Role         string    `json:"role"`
	Disabled     bool      `json:"disabled"`
	CreatedAt    time.Time `json:"createdAt"`
	ExpiresAt    time.Time `json:"expiresAt,omitzero"`
	LastUsedAt   time.Time `json:"lastUsedAt,omitzero"` // within a minute or two
}

// NewKey is a key that was just created. Secret is the value for x-api-key; it
// is never shown again.
type NewKey struct {
	Secret string `json:"key"`
	Key
}

// CreateKey creates a key.
func (c *Control) CreateKey(ctx context.Context, r KeyRequest) (*NewKey, error) {
	body := map[string]any{"organization": r.Organization, "email": r.Email}
	if r.Role != "" {
		body["role"] = r.Role
	}
	if r.Expires > 0 {
		body["expiresSeconds"] = int64(max(1, r.Expires.Seconds()))
	}
	return ask[NewKey](ctx, c.client, http.MethodPost, "/control/keys", nil, body)
}

// Keys lists all keys, oldest first.
func (c *Control) Keys(ctx context.Context) ([]Key, error) {
	out, err := ask[struct {
		Keys []Key `json:"keys"`
	}](ctx, c.client, http.MethodGet, "/control/keys", nil, nil)
	if err != nil {
		return nil, err
	}
	return out.Keys, nil
}

// DisableKey disables a key at once.
func (c *Control) DisableKey(ctx context.Context, id string) (*Key, error) {
	return c.key(ctx, path("control", "keys", id, "disable"))
}

// RevokeLinks ends all links that were made with a key.
func (c *Control) RevokeLinks(ctx context.Context, id string) error {
	return c.client.call(ctx, http.MethodPost, path("control", "keys", id, "revoke-links"), nil, nil, nil)
}

// EnableKey enables a disabled key.
func (c *Control) EnableKey(ctx context.Context, id string) (*Key, error) {
	return c.key(ctx, path("control", "keys", id, "enable"))
}

// RotateKey replaces a key by a new one. The old key stays valid for the
// overlap.
func (c *Control) RotateKey(ctx context.Context, id string, overlap time.Duration) (*NewKey, error) {
	body := map[string]any{"overlapSeconds": int64(overlap.Seconds())}
	return ask[NewKey](ctx, c.client, http.MethodPost, path("control", "keys", id, "rotate"), nil, body)
}

// RotateSecret creates a new secret that signs links and returns its id.
func (c *Control) RotateSecret(ctx context.Context) (kid string, err error) {
	out, err := ask[struct {
		KID string `json:"kid"`
	}](ctx, c.client, http.MethodPost, path("control", "secret", "rotate"), nil, nil)
	if err != nil {
		return "", err
	}
	return out.KID, nil
}

// Isolation says how jobs are isolated from the rest of the machine.
type Isolation struct {
	Kind     string `json:"kind"`     // bubblewrap, cgroup, bubblewrap+cgroup, none
	Sentence string `json:"sentence"` // what is in force, and why no more
}

// Isolation returns the isolation of the jobs that the service runs.
func (c *Control) Isolation(ctx context.Context) (*Isolation, error) {
	return ask[Isolation](ctx, c.client, http.MethodGet, path("control", "isolation"), nil, nil)
}

// DeleteKey deletes a key.
func (c *Control) DeleteKey(ctx context.Context, id string) error {
	return c.client.call(ctx, http.MethodDelete, path("control", "keys", id), nil, nil, nil)
}

func (c *Control) key(ctx context.Context, path string) (*Key, error) {
	return ask[Key](ctx, c.client, http.MethodPost, path, nil, nil)
}

// Drain says since when and why a service starts no jobs.
type Drain struct {
	Since  time.Time `json:"since"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
}

// Drain lets the service start no more jobs.
func (c *Control) Drain(ctx context.Context, reason string) (*Drain, error) {
	body := map[string]any{}
	if reason != "" {
		body["reason"] = reason
	}
	return ask[Drain](ctx, c.client, http.MethodPost, "/control/drain", nil, body)
}

// Resume lets the service start jobs again.
func (c *Control) Resume(ctx context.Context) error {
	return c.client.call(ctx, http.MethodDelete, "/control/drain", nil, nil, nil)
}
