package web

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/apikey"
	"molrun/app/audit"
	"molrun/app/fault"
	"molrun/app/retention"
	"molrun/app/strictjson"
	"molrun/app/unit"
)

// control answers the operator's routes. They are served on a socket that
// only the operator can open, and want no key.
type control struct {
	svc     *app.Service
	keeper  *retention.Keeper
	options ControlOptions
	audit   *auditor
}

// ControlOptions are what the operator's routes need besides the service.
type ControlOptions struct {
	Log zerolog.Logger
	// Audit takes what the audit log tells; nil tells nothing.
	Audit func(audit.Entry)
	// RotateSecret makes a new key for links and gives its id.
	RotateSecret func() (kid string, err error)
	// Isolation is what keeps jobs from the rest of the machine; the zero one is
	// that of a process that runs none.
	Isolation Isolation
}

// Isolation says what keeps jobs from the rest of the machine, as a word and as a
// sentence that tells why not more does.
type Isolation struct {
	Kind     string `json:"kind"`
	Sentence string `json:"sentence"`
}

// Control gives the handler for the control socket.
func Control(svc *app.Service, keeper *retention.Keeper, o ControlOptions) http.Handler {
	ctl := &control{svc, keeper, o, newAuditor(o.Audit, time.Now)}
	engine := newEngine(ctl.around)
	buffered := &budget{size: 64 << 20}
	mount(engine, ctl.routes(), func(class) gin.HandlerFunc {
		return func(c *gin.Context) {
			setDeadlines(c, 30*time.Second, time.Minute)
			l := &limits{url: 16 << 10, json: strictjson.DefaultLimits(), max: 1 << 20, budget: buffered}
			defer l.release()
			c.Set(limitsKey, l)
			c.Next()
		}
	})
	return named(o.Log, engine.ServeHTTP)
}

// around stands around every request of the operator's.
func (o *control) around(c *gin.Context) {
	c.Next()
	o.audit.request(c, "control socket")
}

func (o *control) routes() []route {
	return []route{
		{"GET", "/control/isolation", o.isolation, open},
		{"GET", "/control/keys", o.keys, open},
		{"POST", "/control/keys", o.createKey, open},
		{"DELETE", "/control/keys/:id", o.deleteKey, open},
		{"POST", "/control/keys/:id/disable", o.disableKey, open},
		{"POST", "/control/keys/:id/enable", o.enableKey, open},
		{"POST", "/control/keys/:id/rotate", o.rotateKey, open},
		{"POST", "/control/prune", o.prune, open},
		{"POST", "/control/secret/rotate", o.rotateSecret, open},
		{"GET", "/control/storage", o.storage, open},
	}
}

// isolation handles GET /control/isolation.
func (o *control) isolation(c *gin.Context) {
	if o.options.Isolation.Kind == "" {
		fail(c, fault.Errorf(fault.NotFound, "this process runs no jobs; ask a service, which molrun serve starts"))
		return
	}
	reply(c, o.options.Isolation)
}

// keyView is an API key as the operator sees it: never its secret or hash.
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

type keyRequest struct{ app.KeyRequest }

func (r *keyRequest) read(in *input) {
	b := in.object(required)
	r.Organization = b.text("organization", required)
	r.Email = b.text("email", required)
	r.Role = or(apikey.Role(b.text("role", optional)), apikey.Member)
	r.Expires = time.Duration(valueOf(b.integer("expiresSeconds", 1, maxSeconds))) * time.Second
}

// maxSeconds is the longest time that a time.Duration holds.
const maxSeconds = int64(1<<63-1) / int64(time.Second)

type newKeyView struct {
	Key string `json:"key"` // shown once
	keyView
}

// createKey handles POST /control/keys.
func (o *control) createKey(c *gin.Context) {
	req, err := decode[keyRequest](c)
	if err != nil {
		fail(c, err)
		return
	}
	key, record, err := o.svc.Accounts.CreateKey(ctx(c), req.KeyRequest)
	if err != nil {
		fail(c, err)
		return
	}
	about(c, record.ID)
	reply(c, newKeyView{key, viewKey(record)})
}

// keys handles GET /control/keys.
func (o *control) keys(c *gin.Context) {
	if _, err := decode[bareRequest](c); err != nil {
		fail(c, err)
		return
	}
	records, err := o.svc.Accounts.Keys(ctx(c))
	if err != nil {
		fail(c, err)
		return
	}
	views := make([]keyView, len(records))
	for i, k := range records {
		views[i] = viewKey(k)
	}
	reply(c, map[string]any{"keys": views})
}

type keyIDRequest struct{ id string }

func (r *keyIDRequest) read(in *input) {
	r.id = in.path("id")
	in.noBody()
}

// disableKey handles POST /control/keys/{id}/disable.
func (o *control) disableKey(c *gin.Context) { o.setDisabled(c, true) }

// enableKey handles POST /control/keys/{id}/enable.
func (o *control) enableKey(c *gin.Context) { o.setDisabled(c, false) }

func (o *control) setDisabled(c *gin.Context, disabled bool) {
	req, err := decode[keyIDRequest](c)
	if err != nil {
		fail(c, err)
		return
	}
	record, err := o.svc.Accounts.DisableKey(ctx(c), req.id, disabled)
	if err != nil {
		fail(c, err)
		return
	}
	reply(c, viewKey(record))
}

type rotationRequest struct {
	id      string
	overlap time.Duration
}

func (r *rotationRequest) read(in *input) {
	r.id = in.path("id")
	r.overlap = time.Duration(valueOf(in.object(required).integer("overlapSeconds", 0, maxSeconds))) * time.Second
}

// rotateKey handles POST /control/keys/{id}/rotate.
func (o *control) rotateKey(c *gin.Context) {
	req, err := decode[rotationRequest](c)
	if err != nil {
		fail(c, err)
		return
	}
	key, record, err := o.svc.Accounts.RotateKey(ctx(c), req.id, req.overlap)
	if err != nil {
		fail(c, err)
		return
	}
	reply(c, newKeyView{key, viewKey(record)})
}

// rotateSecret handles POST /control/secret/rotate.
func (o *control) rotateSecret(c *gin.Context) {
	if _, err := decode[bareRequest](c); err != nil {
		fail(c, err)
		return
	}
	kid, err := o.options.RotateSecret()
	if err != nil {
		fail(c, err)
		return
	}
	about(c, kid)
	reply(c, map[string]string{"kid": kid})
}

// deleteKey handles DELETE /control/keys/{id}.
func (o *control) deleteKey(c *gin.Context) {
	req, err := decode[keyIDRequest](c)
	if err != nil {
		fail(c, err)
		return
	}
	if err := o.svc.Accounts.DeleteKey(ctx(c), req.id); err != nil {
		fail(c, err)
		return
	}
	c.Status(http.StatusNoContent)
}
