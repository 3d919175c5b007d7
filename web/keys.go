package web

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/base/unit"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/web/decode"
	"molrun/web/respond"
)

// keys manages API keys: the caller's own, and for admins those of the organization. The
// control socket serves the latter for all organizations.
type keys struct{ svc *access.Accounts }

// keyView is an API key without its secret and hash.
type keyView struct {
	ID           string         `json:"id"`
	Organization string         `json:"organization"`
	Email        string         `json:"email"`
	Role         apikey.Role    `json:"role"`
	Scopes       []apikey.Scope `json:"scopes,omitempty"`
	Networks     []netip.Prefix `json:"networks,omitempty"`
	Name         string         `json:"name,omitempty"`
	Disabled     bool           `json:"disabled"`
	CreatedAt    unit.Time      `json:"createdAt"`
	MadeBy       string         `json:"madeBy,omitempty"` // ID of a key
	ExpiresAt    unit.Time      `json:"expiresAt,omitzero"`
	LastUsedAt   unit.Time      `json:"lastUsedAt,omitzero"` // accurate to a minute or two
	Successor    string         `json:"successor,omitempty"`
}

func viewKey(k *apikey.Key) keyView {
	return keyView{
		k.ID, k.Organization, k.Email, k.Role, k.Scopes, k.Networks, k.Name,
		k.Disabled, k.CreatedAt, k.MadeBy, k.ExpiresAt, k.LastUsedAt, k.Successor,
	}
}

type newKeyView struct {
	Key string `json:"key"` // shown once
	keyView
}

// maxSeconds is the longest time that a time.Duration can hold.
const maxSeconds = int64(1<<63-1) / int64(time.Second)

// create handles POST /admin/keys and /control/keys.
func (h keys) create(c *gin.Context, by app.Caller) error {
	return issue(c, by, h.svc.CreateKey, func(b *decode.Object) access.KeyRequest {
		req := readKey(b)
		if req.Organization = by.Organization; by.Operator {
			req.Organization = b.Text("organization", decode.Required)
		}
		req.Email = b.Text("email", decode.Required)
		return req
	})
}

// createOwn handles POST /keys.
func (h keys) createOwn(c *gin.Context, by app.Caller) error {
	return issue(c, by, h.svc.CreateOwnKey, readKey)
}

// issuer creates a key.
type issuer func(context.Context, app.Caller, access.KeyRequest) (string, *apikey.Key, error)

// issue creates a key and responds with it.
func issue(c *gin.Context, by app.Caller, create issuer, read func(*decode.Object) access.KeyRequest) error {
	req, err := decode.Request(c, func(r *decode.Reader) access.KeyRequest { return read(r.Object(decode.Required)) })
	if err != nil {
		return err
	}
	key, record, err := create(c.Request.Context(), by, req)
	if err != nil {
		return err
	}
	auditObject(c, record.ID)
	return respond.JSON(c.Writer, http.StatusOK, newKeyView{key, viewKey(record)})
}

// maxNetworks limits the size of a key's record.
const maxNetworks = 100

// readKey reads the properties of a new key.
func readKey(b *decode.Object) access.KeyRequest {
	return access.KeyRequest{
		Role:     apikey.Role(b.Text("role", decode.Optional)),
		Scopes:   readScopes(b),
		Networks: readList(b, "networks", maxNetworks),
		Name:     b.Text("name", decode.Optional),
		Expires:  time.Duration(decode.OrZero(b.Integer("expiresSeconds", 1, maxSeconds))) * time.Second,
	}
}

func readScopes(b *decode.Object) (scopes []apikey.Scope) {
	for _, text := range readList(b, "scopes", 3) {
		scopes = append(scopes, apikey.Scope(text))
	}
	return scopes
}

// readList reads a list of strings that must not be empty, because an empty list of
// limits would mean no limit.
func readList(b *decode.Object, name string, most int) []string {
	texts := b.Texts(name)
	if len(texts) > most || texts != nil && len(texts) == 0 {
		b.Fault("value", name, "use 1 to %d, or omit this", most)
		return nil
	}
	return texts
}

// list handles GET /admin/keys and /control/keys.
func (h keys) list(c *gin.Context, by app.Caller) error { return listKeys(c, by, h.svc.Keys) }

// listOwn handles GET /keys.
func (h keys) listOwn(c *gin.Context, by app.Caller) error { return listKeys(c, by, h.svc.OwnKeys) }

func listKeys(c *gin.Context, by app.Caller, list func(context.Context, app.Caller) ([]*apikey.Key, error)) error {
	if err := decode.Empty(c); err != nil {
		return err
	}
	records, err := list(c.Request.Context(), by)
	if err != nil {
		return err
	}
	views := make([]keyView, len(records))
	for i, k := range records {
		views[i] = viewKey(k)
	}
	return respond.JSON(c.Writer, http.StatusOK, map[string]any{"keys": views})
}

// change handles PATCH /admin/keys/{keyId}.
func (h keys) change(c *gin.Context, by app.Caller) error {
	id := ""
	change, err := decode.Request(c, func(r *decode.Reader) access.KeyChange {
		id = r.Path("keyId")
		b := r.Object(decode.Required)
		return access.KeyChange{
			Role: apikey.Role(b.Text("role", decode.Optional)), Scopes: readScopes(b), Name: b.Text("name", decode.Optional),
		}
	})
	if err != nil {
		return err
	}
	record, err := h.svc.ChangeKey(c.Request.Context(), by, id, change)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, viewKey(record))
}

// disable handles POST /admin/keys/{keyId}/disable.
func (h keys) disable(c *gin.Context, by app.Caller) error { return h.setDisabled(c, by, true) }

// enable handles POST /admin/keys/{keyId}/enable.
func (h keys) enable(c *gin.Context, by app.Caller) error { return h.setDisabled(c, by, false) }

func (h keys) setDisabled(c *gin.Context, by app.Caller, disabled bool) error {
	id, err := decode.Request(c, keyID)
	if err != nil {
		return err
	}
	record, err := h.svc.DisableKey(c.Request.Context(), by, id, disabled)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, viewKey(record))
}

// revokeLinks handles POST /admin/keys/{keyId}/revoke-links.
func (h keys) revokeLinks(c *gin.Context, by app.Caller) error {
	return withoutContent(c, by, keyID, h.svc.RevokeLinks)
}

type rotation struct {
	id      string
	overlap time.Duration
}

// rotate handles POST /admin/keys/{keyId}/rotate.
func (h keys) rotate(c *gin.Context, by app.Caller) error {
	req, err := decode.Request(c, func(r *decode.Reader) rotation {
		id := r.Path("keyId")
		seconds := decode.OrZero(r.Object(decode.Required).Integer("overlapSeconds", 0, maxSeconds))
		return rotation{id, time.Duration(seconds) * time.Second}
	})
	if err != nil {
		return err
	}
	key, record, err := h.svc.RotateKey(c.Request.Context(), by, req.id, req.overlap)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, newKeyView{key, viewKey(record)})
}

// delete handles DELETE /admin/keys/{keyId}.
func (h keys) delete(c *gin.Context, by app.Caller) error {
	return withoutContent(c, by, keyID, h.svc.DeleteKey)
}

// deleteOwn handles DELETE /keys/{keyId}.
func (h keys) deleteOwn(c *gin.Context, by app.Caller) error {
	return withoutContent(c, by, keyID, h.svc.DeleteOwnKey)
}

// withoutContent applies do to the object that a request names and responds with 204.
func withoutContent(c *gin.Context, by app.Caller, name func(*decode.Reader) string, do func(context.Context, app.Caller, string) error) error {
	id, err := decode.Request(c, name)
	if err != nil {
		return err
	}
	if err := do(c.Request.Context(), by, id); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}

// keyID reads a key ID from a request without a body.
func keyID(r *decode.Reader) string {
	id := r.Path("keyId")
	r.NoBody()
	return id
}
