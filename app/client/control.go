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

// Control is a client of a service on this machine through its control socket. It has the
// operator's rights.
type Control struct{ client *Client }

// NewControl returns a client of the control socket at path.
func NewControl(path string) *Control {
	return &Control{NewWith("http://molrun", "", &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return DialControl(ctx, path)
		},
		DisableKeepAlives: true, // a command sends only one or two requests
	})}
}

// DialControl connects to the control socket at path. The path can be longer than the 107
// bytes that fit into a socket address.
func DialControl(ctx context.Context, path string) (net.Conn, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	dialer := net.Dialer{Timeout: 10 * time.Second}
	return dialer.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
}

// KeyRequest requests an API key. An empty Role means member, no Scopes means all that
// the role allows, and no Networks means all addresses. If Expires is 0, the key does not
// expire.
type KeyRequest struct {
	Organization, Email, Role, Name string
	Scopes, Networks                []string
	Expires                         time.Duration
}

// Key is an API key without its secret.
type Key struct {
	ID           string    `json:"id"`
	Organization string    `json:"organization"`
	Email        string    `json:"email"`
	Role         string    `json:"role"`
	Scopes       []string  `json:"scopes,omitempty"`
	Networks     []string  `json:"networks,omitempty"`
	Name         string    `json:"name,omitempty"`
	Disabled     bool      `json:"disabled"`
	CreatedAt    time.Time `json:"createdAt"`
	MadeBy       string    `json:"madeBy,omitempty"` // ID of a key
	ExpiresAt    time.Time `json:"expiresAt,omitzero"`
	LastUsedAt   time.Time `json:"lastUsedAt,omitzero"` // accurate to a minute or two
	Successor    string    `json:"successor,omitempty"`
}

// NewKey is a newly created key. Secret is the value for x-api-key; it is never shown
// again.
type NewKey struct {
	Secret string `json:"key"`
	Key
}

// CreateKey creates a key.
func (c *Control) CreateKey(ctx context.Context, r KeyRequest) (*NewKey, error) {
	body := map[string]any{"organization": r.Organization, "email": r.Email}
	for name, value := range map[string]string{"role": r.Role, "name": r.Name} {
		if value != "" {
			body[name] = value
		}
	}
	for name, list := range map[string][]string{"scopes": r.Scopes, "networks": r.Networks} {
		if len(list) > 0 {
			body[name] = list
		}
	}
	if r.Expires > 0 {
		body["expiresSeconds"] = int64(max(1, r.Expires.Seconds()))
	}
	return requestJSON[NewKey](ctx, c.client, http.MethodPost, "/control/keys", nil, body)
}

// Keys lists all keys, oldest first.
func (c *Control) Keys(ctx context.Context) ([]Key, error) {
	out, err := requestJSON[struct {
		Keys []Key `json:"keys"`
	}](ctx, c.client, http.MethodGet, "/control/keys", nil, nil)
	if err != nil {
		return nil, err
	}
	return out.Keys, nil
}

// Invitation is a link that signs in a user once.
type Invitation struct {
	URL          string    `json:"url"`
	Organization string    `json:"organization"`
	Email        string    `json:"email"`
	ExpiresAt    time.Time `json:"expiresAt"`
}

// SignIn creates a link that signs in a user. Organization and email can be "" if they
// are unambiguous.
func (c *Control) SignIn(ctx context.Context, organization, email string) (*Invitation, error) {
	body := map[string]any{}
	for name, value := range map[string]string{"organization": organization, "email": email} {
		if value != "" {
			body[name] = value
		}
	}
	return requestJSON[Invitation](ctx, c.client, http.MethodPost, "/control/sign-in", nil, body)
}

// DisableKey disables a key immediately.
func (c *Control) DisableKey(ctx context.Context, id string) (*Key, error) {
	return c.key(ctx, path("control", "keys", id, "disable"))
}

// RevokeLinks revokes all links created with a key.
func (c *Control) RevokeLinks(ctx context.Context, id string) error {
	return c.client.call(ctx, http.MethodPost, path("control", "keys", id, "revoke-links"), nil, nil, nil)
}

// EnableKey enables a disabled key.
func (c *Control) EnableKey(ctx context.Context, id string) (*Key, error) {
	return c.key(ctx, path("control", "keys", id, "enable"))
}

// RotateKey replaces a key with a new one. The old key stays valid for the overlap.
func (c *Control) RotateKey(ctx context.Context, id string, overlap time.Duration) (*NewKey, error) {
	body := map[string]any{"overlapSeconds": int64(overlap.Seconds())}
	return requestJSON[NewKey](ctx, c.client, http.MethodPost, path("control", "keys", id, "rotate"), nil, body)
}

// KeyChange describes changes to a key; empty fields are left unchanged.
type KeyChange struct {
	Role   string   `json:"role,omitempty"`
	Scopes []string `json:"scopes,omitempty"`
	Name   string   `json:"name,omitempty"`
}

// ChangeKey changes the role, scopes or name of a key.
func (c *Control) ChangeKey(ctx context.Context, id string, change KeyChange) (*Key, error) {
	return requestJSON[Key](ctx, c.client, http.MethodPatch, path("control", "keys", id), nil, change)
}

// RotateSecret creates a new secret for signing links and returns its ID.
func (c *Control) RotateSecret(ctx context.Context) (kid string, err error) {
	return c.rotate(ctx, "rotate")
}

// RotateSecretNow is RotateSecret, and also revokes all links.
func (c *Control) RotateSecretNow(ctx context.Context) (kid string, err error) {
	return c.rotate(ctx, "rotate-now")
}

func (c *Control) rotate(ctx context.Context, how string) (kid string, err error) {
	out, err := requestJSON[struct {
		KID string `json:"kid"`
	}](ctx, c.client, http.MethodPost, path("control", "secret", how), nil, nil)
	if err != nil {
		return "", err
	}
	return out.KID, nil
}

// AlgorithmsRead is the result of reading the site's algorithm files. Names are types
// with versions.
type AlgorithmsRead struct {
	ReadAt   time.Time          `json:"readAt"`
	Added    []string           `json:"added"`
	Changed  []string           `json:"changed"`
	Removed  []string           `json:"removed"`
	Mistakes []AlgorithmMistake `json:"mistakes"`
}

// AlgorithmMistake is an error in a file. Kept is the type and version that the file
// previously defined and that stays available, "" if none.
type AlgorithmMistake struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Message string `json:"message"`
	Kept    string `json:"kept,omitempty"`
}

// Algorithms returns the result of the last time the service read the algorithm files.
func (c *Control) Algorithms(ctx context.Context) (*AlgorithmsRead, error) {
	return requestJSON[AlgorithmsRead](ctx, c.client, http.MethodGet, "/control/algorithms", nil, nil)
}

// ReloadAlgorithms makes the service read the algorithm files again.
func (c *Control) ReloadAlgorithms(ctx context.Context) (*AlgorithmsRead, error) {
	return requestJSON[AlgorithmsRead](ctx, c.client, http.MethodPost, "/control/algorithms/reload", nil, nil)
}

// addresses holds the addresses of the running service.
type addresses struct {
	URL    string `json:"url"`
	Listen string `json:"listen"`
}

// Address returns the URL of the running service for clients.
func (c *Control) Address(ctx context.Context) (string, error) {
	a, err := c.addresses(ctx)
	return a.URL, err
}

// Listener returns the address on which the running service listens, such as
// https://[::]:8443.
func (c *Control) Listener(ctx context.Context) (string, error) {
	a, err := c.addresses(ctx)
	return a.Listen, err
}

func (c *Control) addresses(ctx context.Context) (addresses, error) {
	a, err := requestJSON[addresses](ctx, c.client, http.MethodGet, path("control", "address"), nil, nil)
	if err != nil {
		return addresses{}, err
	}
	return *a, nil
}

// Isolation describes how jobs are isolated from the rest of the machine.
type Isolation struct {
	Kind     string `json:"kind"`     // bubblewrap, cgroup, bubblewrap+cgroup, none
	Sentence string `json:"sentence"` // what is in effect, and why not more
}

// Isolation returns how the service isolates jobs.
func (c *Control) Isolation(ctx context.Context) (*Isolation, error) {
	return requestJSON[Isolation](ctx, c.client, http.MethodGet, path("control", "isolation"), nil, nil)
}

// DeleteKey deletes a key.
func (c *Control) DeleteKey(ctx context.Context, id string) error {
	return c.client.call(ctx, http.MethodDelete, path("control", "keys", id), nil, nil, nil)
}

func (c *Control) key(ctx context.Context, path string) (*Key, error) {
	return requestJSON[Key](ctx, c.client, http.MethodPost, path, nil, nil)
}

// Drain describes since when and why a service has stopped starting jobs.
type Drain struct {
	Since  time.Time `json:"since"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
}

// Drain makes the service stop starting jobs.
func (c *Control) Drain(ctx context.Context, reason string) (*Drain, error) {
	body := map[string]any{}
	if reason != "" {
		body["reason"] = reason
	}
	return requestJSON[Drain](ctx, c.client, http.MethodPost, "/control/drain", nil, body)
}

// Resume makes the service start jobs again.
func (c *Control) Resume(ctx context.Context) error {
	return c.client.call(ctx, http.MethodDelete, "/control/drain", nil, nil, nil)
}
