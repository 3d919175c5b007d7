package web

import (
	"net/http"
	"net/netip"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/app/job/output"
	"molrun/web/decode"
	"molrun/web/edge"
	"molrun/web/respond"
)

// sessions signs browsers in and out, and reports who is signed in.
type sessions struct {
	svc     *access.Accounts
	cookie  edge.Cookie
	build   string // version of this program
	offered Features
	bodies  bodyLimits
}

// bodyLimits are the maximum body sizes in bytes.
type bodyLimits struct{ one, batch int64 }

type selfView struct {
	Organization string         `json:"organization"`
	Email        string         `json:"email"`
	Role         apikey.Role    `json:"role"`
	Rights       []apikey.Scope `json:"rights"`
	SignIn       string         `json:"signIn"` // key, session or proxy
	Key          *selfKeyView   `json:"key,omitempty"`
	ExpiresAt    unit.Time      `json:"expiresAt,omitzero"`
	IdleSeconds  int            `json:"idleSeconds,omitempty"`
	Version      string         `json:"version"`
	APIVersion   string         `json:"apiVersion"`
	Features     Features       `json:"features"`
	Limits       limitsView     `json:"limits"`
}

type selfKeyView struct {
	ID        string         `json:"id"`
	Name      string         `json:"name,omitempty"`
	Networks  []netip.Prefix `json:"networks,omitempty"`
	ExpiresAt unit.Time      `json:"expiresAt,omitzero"`
}

type limitsView struct {
	BodyBytes       int64 `json:"bodyBytes"`
	BatchBodyBytes  int64 `json:"batchBodyBytes"`
	BatchRows       int   `json:"batchRows"`
	PageSize        int   `json:"pageSize"`
	ShareTTLSeconds int64 `json:"shareTtlSeconds"`
}

// begin handles POST /session. To sign in, the client sends a key or the token of a link.
func (h sessions) begin(c *gin.Context, _ app.Caller) error {
	type proof struct{ key, token string }
	shown, err := decode.Request(c, func(r *decode.Reader) proof {
		b := r.Object(decode.Required)
		p := proof{b.Text("key", decode.Optional), b.Text("token", decode.Optional)}
		if (p.key == "") == (p.token == "") {
			b.Fault("value", "key", "send an API key, or the token of a sign-in link")
		}
		return p
	})
	if err != nil {
		return err
	}
	if edge.SignedIn(c.Request) != "" {
		return fault.Errorf(fault.Forbidden, "Sign-in is handled by the proxy; sign out there to switch users.")
	}
	by, err := h.prove(c, shown.key, shown.token)
	if err != nil {
		return err
	}
	c.Set(callerKey, by)
	value, made, err := h.svc.BeginSession(c.Request.Context(), by)
	if err == nil {
		err = h.endPrevious(c)
	}
	if err != nil {
		return err
	}
	by.Session = made.Hash
	view, err := h.view(c, by)
	if err != nil {
		return err
	}
	h.cookie.Set(c.Writer, c.Request, value, made.ExpiresAt.Time)
	return respond.JSON(c.Writer, http.StatusOK, view)
}

// endPrevious ends the browser's previous session, whose cookie is being replaced.
func (h sessions) endPrevious(c *gin.Context) error {
	former, err := h.svc.AuthenticateSession(c.Request.Context(), h.cookie.Value(c.Request), edge.Address(c.Request))
	if fault.CodeOf(err) == fault.Unauthorized {
		return nil // ended already, or never existed
	}
	if err != nil {
		return err
	}
	return h.svc.EndSession(c.Request.Context(), former)
}

// prove returns the caller identified by a key or by the token of a sign-in link.
func (h sessions) prove(c *gin.Context, key, token string) (app.Caller, error) {
	if token != "" {
		return h.svc.Accept(c.Request.Context(), token)
	}
	c.Set(attemptKey, apikey.ID(key))
	by, err := h.svc.Authenticate(c.Request.Context(), key, edge.Address(c.Request))
	if fault.CodeOf(err) == fault.Unauthorized {
		err = fault.Errorf(fault.Unauthorized, "This API key is not valid, or can't be used from this address. Check that you copied all of it, or ask an administrator.")
	}
	return by, err
}

// get handles GET /session.
func (h sessions) get(c *gin.Context, by app.Caller) error {
	if err := decode.Empty(c); err != nil {
		return err
	}
	view, err := h.view(c, by)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, view)
}

// view describes the caller and its rights.
func (h sessions) view(c *gin.Context, by app.Caller) (selfView, error) {
	k, session, err := h.svc.Self(c.Request.Context(), by)
	if err != nil {
		return selfView{}, err
	}
	view := selfView{
		Organization: by.Organization, Email: by.Email, Role: k.Role, Rights: rightsOf(by), SignIn: "key",
		Version: h.build, APIVersion: APIVersion, Features: h.offered,
		Limits: limitsView{
			BodyBytes: h.bodies.one, BatchBodyBytes: h.bodies.batch, BatchRows: app.MaxBatchRows,
			PageSize: app.MaxPage, ShareTTLSeconds: int64(output.MaxShareTTL.Seconds()),
		},
	}
	if k.Hash != "" {
		view.Key = &selfKeyView{k.ID, k.Name, k.Networks, k.ExpiresAt}
	} else {
		view.SignIn = "proxy"
	}
	if session != nil {
		view.SignIn, view.ExpiresAt, view.IdleSeconds = "session", session.ExpiresAt, int(apikey.SessionIdle.Seconds())
	}
	return view, nil
}

// rightsOf returns the rights of a caller as scopes.
func rightsOf(by app.Caller) []apikey.Scope {
	rights := []apikey.Scope{}
	for _, s := range []apikey.Scope{apikey.ScopeRead, apikey.ScopeSubmit, apikey.ScopeAdmin} {
		if by.Rights.Has(s.Rights()) {
			rights = append(rights, s)
		}
	}
	return rights
}

// end handles DELETE /session.
func (h sessions) end(c *gin.Context, by app.Caller) error {
	if err := decode.NoBody(c); err != nil {
		return err
	}
	if err := h.svc.EndSession(c.Request.Context(), by); err != nil {
		return err
	}
	h.cookie.Clear(c.Writer, c.Request)
	c.Status(http.StatusNoContent)
	return nil
}
