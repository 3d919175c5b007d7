package web

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/access"
	"molrun/app/audit"
	"molrun/app/fault"
	"molrun/app/retention"
	"molrun/app/strictjson"
	"molrun/web/decode"
	"molrun/web/edge"
	"molrun/web/respond"
)

// ControlOptions configure the operator's routes.
type ControlOptions struct {
	Log zerolog.Logger
	// Audit receives the entries of the audit log; nil drops them.
	Audit func(audit.Entry)
	// RotateSecret makes a new secret that signs links and returns its id.
	RotateSecret func() (kid string, err error)
	// Isolation is that of the jobs that this process runs; zero if it runs none.
	Isolation Isolation
}

// Isolation says what isolates jobs from the rest of the machine, as a word and
// as a sentence that says why there is no more.
type Isolation struct {
	Kind     string `json:"kind"`
	Sentence string `json:"sentence"`
}

// Control returns the handler of the control socket. Only the operator can open
// the socket, so its routes need no key.
func Control(svc *app.Service, accounts *access.Accounts, keeper *retention.Keeper, o ControlOptions) http.Handler {
	limits := &decode.Limits{
		URL: 16 << 10, Body: 1 << 20, Arrive: 30 * time.Second,
		JSON: strictjson.DefaultLimits(), Budget: decode.NewBudget(64<<20, 64<<20),
	}
	audit := newAuditor(o.Audit, time.Now)
	engine := newEngine(func(c *gin.Context) {
		c.Next()
		audit.add(c, "control socket")
	})
	byOperator := drain{svc.Runs, func(app.Caller) app.Caller { return app.Operator() }}
	mount(engine, control{keys{accounts}, storage{keeper}, byOperator, o}.routes(), func(_ class, next handler) handler {
		return func(c *gin.Context, by app.Caller) error {
			defer limits.Apply(c)()
			limitAnswer(c, time.Minute)
			return next(c, by)
		}
	})
	return edge.Trace(o.Log, engine)
}

// control is the operator's handlers.
type control struct {
	keys    keys
	storage storage
	drain   drain
	options ControlOptions
}

func (h control) routes() []route {
	return []route{
		{"DELETE", "/control/drain", h.drain.end, open},
		{"POST", "/control/drain", h.drain.begin, open},
		{"GET", "/control/isolation", h.isolation, open},
		{"GET", "/control/keys", h.keys.list, open},
		{"POST", "/control/keys", h.keys.create, open},
		{"DELETE", "/control/keys/:id", h.keys.delete, open},
		{"POST", "/control/keys/:id/disable", h.keys.disable, open},
		{"POST", "/control/keys/:id/enable", h.keys.enable, open},
		{"POST", "/control/keys/:id/revoke-links", h.keys.revokeLinks, open},
		{"POST", "/control/keys/:id/rotate", h.keys.rotate, open},
		{"POST", "/control/prune", h.storage.prune, open},
		{"POST", "/control/secret/rotate", h.rotateSecret, open},
		{"GET", "/control/storage", h.storage.report, open},
	}
}

// isolation handles GET /control/isolation.
func (h control) isolation(c *gin.Context, _ app.Caller) error {
	if h.options.Isolation.Kind == "" {
		return fault.Errorf(fault.NotFound, "this process runs no jobs; ask a running service (molrun serve)")
	}
	return respond.JSON(c.Writer, http.StatusOK, h.options.Isolation)
}

// rotateSecret handles POST /control/secret/rotate.
func (h control) rotateSecret(c *gin.Context, _ app.Caller) error {
	if err := decode.Empty(c); err != nil {
		return err
	}
	kid, err := h.options.RotateSecret()
	if err != nil {
		return err
	}
	auditObject(c, kid)
	return respond.JSON(c.Writer, http.StatusOK, map[string]string{"kid": kid})
}
