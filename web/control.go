package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
	"molrun/app/job/access"
	"molrun/app/job/audit"
	"molrun/app/job/retention"
	"molrun/app/job/usage"
	"molrun/web/decode"
	"molrun/web/edge"
	"molrun/web/respond"
	"molrun/web/static"
)

// ControlOptions configure the operator's routes.
type ControlOptions struct {
	Log zerolog.Logger
	// Audit receives the entries of the audit log. nil discards them.
	Audit func(audit.Entry)
	// RotateSecret creates a new secret for signing links and returns its ID.
	RotateSecret func() (kid string, err error)
	// RotateNow does the same and also invalidates all existing links.
	RotateNow func(context.Context) (kid string, err error)
	// BaseURL is the URL of the service for browsers. "" means that this process does not
	// serve HTTP.
	BaseURL string
	// Listener is the address of the service's listener, such as http://[::]:8080. It is
	// "" if BaseURL is.
	Listener string
	// Reload reads the algorithm files again, and LastRead returns the result of the last
	// read. Both are nil if this process does not serve algorithms.
	Reload   func() (AlgorithmsRead, error)
	LastRead func() AlgorithmsRead
	// Isolation describes the jobs of this process. It is zero if the process runs no
	// jobs.
	Isolation Isolation
}

// Isolation describes how jobs are isolated from the rest of the machine, as a word and
// as a sentence that also explains what is missing.
type Isolation struct {
	Kind     string `json:"kind"`
	Sentence string `json:"sentence"`
}

// AlgorithmsRead is the result of reading the site's algorithm files. It names algorithms
// by type and version.
type AlgorithmsRead struct {
	ReadAt   unit.Time          `json:"readAt"`
	Added    []string           `json:"added"`
	Changed  []string           `json:"changed"`
	Removed  []string           `json:"removed"`
	Mistakes []AlgorithmMistake `json:"mistakes"`
}

// AlgorithmMistake is an error in an algorithm file. Kept is the type and version that
// the service still offers as the file defined it before, or "" if there is none.
type AlgorithmMistake struct {
	File    string `json:"file"`
	Line    int    `json:"line"` // from 1
	Message string `json:"message"`
	Kept    string `json:"kept,omitempty"`
}

// String summarizes the changes for the audit log.
func (r AlgorithmsRead) String() string {
	return fmt.Sprintf("%d added, %d changed, %d removed, %d errors", len(r.Added), len(r.Changed), len(r.Removed), len(r.Mistakes))
}

// Control returns the handler of the control socket. Only the operator can open the
// socket, so its routes need no key.
func Control(svc *app.Service, accounts *access.Accounts, keeper *retention.Keeper, reports *usage.Reports, o ControlOptions) http.Handler {
	limits := &decode.Limits{
		URL: 16 << 10, Body: 1 << 20, Arrive: 30 * time.Second,
		JSON: strictjson.DefaultLimits(), Budget: decode.NewBudget(64<<20, 64<<20),
	}
	audit := newAuditor(o.Audit, time.Now)
	engine := newEngine(func(c *gin.Context) {
		c.Next()
		audit.auditRequest(c, "control socket")
	})
	mount(engine, control{keys{accounts}, users{accounts}, storage{keeper}, usageReports{reports}, drain{svc.Runs}, o}.routes(), func(r route) handler {
		return func(c *gin.Context, _ app.Caller) (err error) {
			defer limits.Apply(c)(&err)
			limitResponseTime(c, time.Minute)
			return r.handle(c, app.Operator())
		}
	})
	return edge.Trace(o.Log, engine)
}

// control holds the operator's handlers.
type control struct {
	keys    keys
	users   users
	storage storage
	usage   usageReports
	drain   drain
	options ControlOptions
}

func (h control) routes() []route {
	return []route{
		{"GET", "/control/algorithms", h.algorithms, open, 0},
		{"POST", "/control/algorithms/reload", h.reload, open, 0},
		{"DELETE", "/control/drain", h.drain.end, open, 0},
		{"POST", "/control/drain", h.drain.begin, open, 0},
		{"GET", "/control/isolation", h.isolation, open, 0},
		{"GET", "/control/address", h.address, open, 0},
		{"GET", "/control/keys", h.keys.list, open, 0},
		{"POST", "/control/keys", h.keys.create, open, 0},
		{"DELETE", "/control/keys/:keyId", h.keys.delete, open, 0},
		{"PATCH", "/control/keys/:keyId", h.keys.change, open, 0},
		{"POST", "/control/keys/:keyId/disable", h.keys.disable, open, 0},
		{"POST", "/control/keys/:keyId/enable", h.keys.enable, open, 0},
		{"POST", "/control/keys/:keyId/revoke-links", h.keys.revokeLinks, open, 0},
		{"POST", "/control/keys/:keyId/rotate", h.keys.rotate, open, 0},
		{"POST", "/control/prune", h.storage.prune, open, 0},
		{"POST", "/control/secret/rotate", h.rotateSecret, open, 0},
		{"POST", "/control/secret/rotate-now", h.rotateSecretNow, open, 0},
		{"POST", "/control/sign-in", h.signIn, open, 0},
		{"GET", "/control/storage", h.storage.report, open, 0},
		{"GET", "/control/usage", h.usage.show, open, 0},
		{"GET", "/control/users", h.users.list, open, 0},
		{"DELETE", "/control/users/:email", h.users.delete, open, 0},
		{"PATCH", "/control/users/:email", h.users.change, open, 0},
	}
}

// algorithms handles GET /control/algorithms.
func (h control) algorithms(c *gin.Context, _ app.Caller) error {
	if h.options.LastRead == nil {
		return fault.Errorf(fault.NotFound, "the service is not running")
	}
	return respond.JSON(c.Writer, http.StatusOK, h.options.LastRead())
}

// reload handles POST /control/algorithms/reload.
func (h control) reload(c *gin.Context, _ app.Caller) error {
	if err := decode.Empty(c); err != nil {
		return err
	}
	if h.options.Reload == nil {
		return fault.Errorf(fault.NotFound, "the service is not running; it will load the algorithm files at startup")
	}
	read, err := h.options.Reload()
	if err != nil {
		return err
	}
	auditObject(c, read.String())
	return respond.JSON(c.Writer, http.StatusOK, read)
}

// address handles GET /control/address.
func (h control) address(c *gin.Context, _ app.Caller) error {
	if h.options.BaseURL == "" {
		return fault.Errorf(fault.NotFound, "the service is not running; start it (molrun serve) and try again")
	}
	return respond.JSON(c.Writer, http.StatusOK, addressView{strings.TrimRight(h.options.BaseURL, "/"), h.options.Listener})
}

// addressView is the URL for clients and the address of the listener.
type addressView struct {
	URL    string `json:"url"`
	Listen string `json:"listen"` // begins with http:// or https://
}

// isolation handles GET /control/isolation.
func (h control) isolation(c *gin.Context, _ app.Caller) error {
	if h.options.Isolation.Kind == "" {
		return fault.Errorf(fault.NotFound, "this process runs no jobs; ask the running service (molrun serve)")
	}
	return respond.JSON(c.Writer, http.StatusOK, h.options.Isolation)
}

type invitationView struct {
	URL          string    `json:"url"` // can be used once to sign in
	Organization string    `json:"organization"`
	Email        string    `json:"email"`
	ExpiresAt    unit.Time `json:"expiresAt"`
}

// signIn handles POST /control/sign-in.
func (h control) signIn(c *gin.Context, _ app.Caller) error {
	type request struct{ organization, email string }
	req, err := decode.Request(c, func(r *decode.Reader) request {
		b := r.Object(decode.Required)
		return request{b.Text("organization", decode.Optional), b.Text("email", decode.Optional)}
	})
	if err != nil {
		return err
	}
	if h.options.BaseURL == "" {
		return fault.Errorf(fault.NotFound, "the service is not running; start it (molrun serve) and try again")
	}
	made, err := h.keys.svc.Invite(c.Request.Context(), req.organization, req.email)
	if err != nil {
		return err
	}
	auditObject(c, made.Email)
	url := strings.TrimRight(h.options.BaseURL, "/") + static.ApplicationPrefix + "#signin=" + made.Token
	return respond.JSON(c.Writer, http.StatusOK, invitationView{url, made.Organization, made.Email, unit.At(made.ExpiresAt)})
}

// rotateSecretNow handles POST /control/secret/rotate-now.
func (h control) rotateSecretNow(c *gin.Context, _ app.Caller) error {
	return h.rotate(c, func() (string, error) { return h.options.RotateNow(c.Request.Context()) })
}

// rotateSecret handles POST /control/secret/rotate.
func (h control) rotateSecret(c *gin.Context, _ app.Caller) error {
	return h.rotate(c, h.options.RotateSecret)
}

func (h control) rotate(c *gin.Context, rotate func() (kid string, err error)) error {
	if err := decode.Empty(c); err != nil {
		return err
	}
	kid, err := rotate()
	if err != nil {
		return err
	}
	auditObject(c, kid)
	return respond.JSON(c.Writer, http.StatusOK, map[string]string{"kid": kid})
}
