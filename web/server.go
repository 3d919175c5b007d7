// Package web is the HTTP interface of the service: it reads requests, calls
// one method of [app.Service] each, and writes what that gives. It holds no
// rule. Every route is a line in routes.go, every answer is described in
// openapi.yaml, and errors.go alone turns codes into statuses.
package web

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/audit"
	"molrun/app/fault"
	"molrun/app/strictjson"
)

// Options are what the API needs besides the service. Zero values take the
// defaults named here.
type Options struct {
	Log       zerolog.Logger // of what no request causes; requests have that of Outer
	PublicURL string         // base of links; "": scheme and host of the request
	Version   string         // of this program, told by GET /version

	MaxURL       int   // bytes of path and query, 16 KiB
	MaxBody      int64 // bytes of a JSON body, 8 MiB
	MaxBatchBody int64 // bytes of a batch's body, 64 MiB
	MaxBuffered  int64 // bytes of all bodies being read or handled at once, 96 MiB
	MaxInFlight  int   // requests handled at once, 1024; half as many may wait for a change
	JSON         strictjson.Limits

	BodyTime   time.Duration // for a JSON body to arrive, 30 s
	BatchTime  time.Duration // for a batch's body, 5 min
	AnswerTime time.Duration // for an answer to leave, 1 min

	Rates          Rates
	TrustedProxies []netip.Prefix // not slowed down when keys are refused

	// Audit takes what the audit log tells; nil tells nothing.
	Audit func(audit.Entry)

	// Registry takes the metrics that GET /metrics shows. It serves one API.
	Registry *prometheus.Registry
	// Ready tells what GET /readyz shows; nil is always ready.
	Ready func(context.Context) (map[string]any, bool)
	// Stopping is done when the server is about to stop: requests that wait
	// for a change are then answered at once. nil never stops.
	Stopping context.Context
	// Now is the clock of rate limits.
	Now func() time.Time
}

// Rates are how many requests a second each API key may make; 0 is no limit.
// Failed is how many without a valid key an address may make: 100 where it is
// 0, without limit where it is below.
type Rates struct{ Submit, List, Upload, Failed float64 }

func (o Options) withDefaults() Options {
	o.PublicURL = strings.TrimRight(o.PublicURL, "/")
	o.MaxURL = or(o.MaxURL, 16<<10)
	o.MaxBody = or(o.MaxBody, 8<<20)
	o.MaxBatchBody = or(o.MaxBatchBody, 64<<20)
	o.MaxBuffered = or(o.MaxBuffered, 96<<20)
	o.MaxInFlight = or(o.MaxInFlight, 1024)
	o.JSON = or(o.JSON, strictjson.DefaultLimits())
	o.BodyTime = or(o.BodyTime, 30*time.Second)
	o.BatchTime = or(o.BatchTime, 5*time.Minute)
	o.AnswerTime = or(o.AnswerTime, time.Minute)
	o.Rates.Failed = or(o.Rates.Failed, 100)
	o.Version = or(o.Version, "unknown")
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.Ready == nil {
		o.Ready = func(context.Context) (map[string]any, bool) { return map[string]any{}, true }
	}
	if o.Stopping == nil {
		o.Stopping = context.Background()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// or gives value, or instead where it is the zero value.
func or[T comparable](value, instead T) T {
	var zero T
	if value == zero {
		return instead
	}
	return value
}

// API answers the routes of routes.go.
type API struct {
	svc      *app.Service
	options  Options
	observed *observed
	audit    *auditor
	refused  *buckets // failed authentications by address
	rates    map[class]*buckets
	buffered *budget
	inFlight chan struct{}
	waiting  chan struct{} // of those in flight, for a change
}

// New gives the handler of the API, to be served below [Outer].
func New(svc *app.Service, o Options) http.Handler {
	o = o.withDefaults()
	submissions := newBuckets(o.Rates.Submit, o.Now)
	a := &API{
		svc:      svc,
		options:  o,
		observed: observe(o.Registry),
		audit:    newAuditor(o.Audit, o.Now),
		refused:  newBuckets(o.Rates.Failed, o.Now),
		rates: map[class]*buckets{
			submitting: submissions,
			batch:      submissions,
			listing:    newBuckets(o.Rates.List, o.Now),
			uploading:  newBuckets(o.Rates.Upload, o.Now),
		},
		buffered: &budget{size: o.MaxBuffered},
		inFlight: make(chan struct{}, o.MaxInFlight),
		waiting:  make(chan struct{}, max(1, o.MaxInFlight/2)),
	}
	engine := newEngine(a.access)
	mount(engine, a.routes(), a.admit)
	return engine
}

// newEngine gives a gin engine that adds nothing of its own to the wire: no
// redirects, no texts, no forwarded addresses. Path parameters arrive as they
// were sent and are decoded once, by input.path.
func newEngine(around ...gin.HandlerFunc) *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.RedirectTrailingSlash = false
	e.RedirectFixedPath = false
	e.HandleMethodNotAllowed = true
	e.UseEscapedPath = true
	e.UnescapePathValues = false
	e.ForwardedByClientIP = false
	if err := e.SetTrustedProxies(nil); err != nil {
		panic(err) // gin refuses only addresses that it cannot read
	}
	e.Use(around...)
	e.NoRoute(noRoute)
	e.NoMethod(noMethod)
	return e
}

func noRoute(c *gin.Context) {
	fail(c, fault.Errorf(fault.NotFound, "There is no %s %s here; GET /openapi.yaml lists what there is.",
		c.Request.Method, cut(c.Request.URL.EscapedPath())))
}

// cut shortens what a client sent, for messages and the log.
func cut(s string) string {
	if len(s) <= 200 {
		return s
	}
	return strings.ToValidUTF8(s[:200], "") + "…"
}

func noMethod(c *gin.Context) {
	fail(c, fault.Errorf(fault.MethodNotAllowed, "%s is not possible here; use %s.",
		c.Request.Method, c.Writer.Header().Get("Allow")))
}

// Server gives the server for handler with the bounds that hold for every
// connection. Reading and writing bodies has no common limit, since uploads
// and downloads take as long as they take: each route sets its own deadlines.
func Server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    64 << 10,
		// OPTIONS * is answered as any other unknown route.
		DisableGeneralOptionsHandler: true,
	}
}
