package web

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/access"
	"molrun/app/apikey"
	"molrun/app/unit"
	"molrun/web/decode"
	"molrun/web/respond"
)

// keys manages API keys.
type keys struct{ svc *access.Accounts }

// keyView is an API key without its secret and hash.
type keyView struct {
	ID           string      `json:"id"`
	Organization string      `json:"organization"`
	Email        string      `json:"email"`
	Role         apikey.Role `json:"role"`
	Disabled     bool        `json:"disabled"`
	CreatedAt    unit.Time   `json:"createdAt"`
	ExpiresAt    unit.Time   `json:"expiresAt,omitzero"`
	LastUsedAt   unit.Time   `json:"lastUsedAt,omitzero"` // within a minute or two
}

func viewKey(k *apikey.Key) keyView {
	return keyView{k.ID, k.Organization, k.Email, k.Role, k.Disabled, k.CreatedAt, k.ExpiresAt, k.LastUsedAt}
}

type newKeyView struct {
	Key string `json:"key"` // shown once
	keyView
}

// maxSeconds is the longest time that a time.Duration holds.
const maxSeconds = int64(1<<63-1) / int64(time.Second)

// create handles POST /control/keys.
func (h keys) create(c *gin.Context, _ app.Caller) error {
	req, err := decode.Request(c, func(r *decode.Reader) access.KeyRequest {
		b := r.Object(decode.Required)
		return access.KeyRequest{
			Organization: b.Text("organization", decode.Required),
			Email:        b.Text("email", decode.Required),
			Role:         or(apikey.Role(b.Text("role", decode.Optional)), apikey.Member),
			Expires:      time.Duration(decode.OrZero(b.Integer("expiresSeconds", 1, maxSeconds))) * time.Second,
		}
	})
	if err != nil {
		return err
	}
	key, record, err := h.svc.CreateKey(c.Request.Context(), req)
	if err != nil {
		return err
	}
	auditObject(c, record.ID)
	return respond.JSON(c.Writer, http.StatusOK, newKeyView{key, viewKey(record)})
}

// list handles GET /control/keys.
func (h keys) list(c *gin.Context, _ app.Caller) error {
	if err := decode.Empty(c); err != nil {
		return err
	}
	records, err := h.svc.Keys(c.Request.Context())
	if err != nil {
		return err
	}
	views := make([]keyView, len(records))
	for i, k := range records {
		views[i] = viewKey(k)
	}
	return respond.JSON(c.Writer, http.StatusOK, map[string]any{"keys": views})
}

// disable handles POST /control/keys/{id}/disable.
func (h keys) disable(c *gin.Context, _ app.Caller) error { return h.setDisabled(c, true) }

// enable handles POST /control/keys/{id}/enable.
func (h keys) enable(c *gin.Context, _ app.Caller) error { return h.setDisabled(c, false) }

func (h keys) setDisabled(c *gin.Context, disabled bool) error {
	id, err := decode.Request(c, keyID)
	if err != nil {
		return err
	}
	record, err := h.svc.DisableKey(c.Request.Context(), id, disabled)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, viewKey(record))
}

// revokeLinks handles POST /control/keys/{id}/revoke-links.
func (h keys) revokeLinks(c *gin.Context, _ app.Caller) error {
	return withoutContent(c, keyID, h.svc.RevokeLinks)
}

type rotation struct {
	id      string
	overlap time.Duration
}

// rotate handles POST /control/keys/{id}/rotate.
func (h keys) rotate(c *gin.Context, _ app.Caller) error {
	req, err := decode.Request(c, func(r *decode.Reader) rotation {
		id := r.Path("id")
		seconds := decode.OrZero(r.Object(decode.Required).Integer("overlapSeconds", 0, maxSeconds))
		return rotation{id, time.Duration(seconds) * time.Second}
	})
	if err != nil {
		return err
	}
	key, record, err := h.svc.RotateKey(c.Request.Context(), req.id, req.overlap)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, newKeyView{key, viewKey(record)})
}

// delete handles DELETE /control/keys/{id}.
func (h keys) delete(c *gin.Context, _ app.Caller) error {
	return withoutContent(c, keyID, h.svc.DeleteKey)
}

// withoutContent applies do to what a request names and answers 204.
func withoutContent(c *gin.Context, name func(*decode.Reader) string, do func(context.Context, string) error) error {
	id, err := decode.Request(c, name)
	if err != nil {
		return err
	}
	if err := do(c.Request.Context(), id); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}

// keyID reads the id of a key.
func keyID(r *decode.Reader) string {
	id := r.Path("id")
	r.NoBody()
	return id
}
