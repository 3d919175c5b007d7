package web

import (
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/web/edge"
	"molrun/web/respond"
)

// observer records every API request in the access log, the metrics and the audit log.
type observer struct {
	metrics *requestMetrics
	audit   *auditor
}

// observe wraps the handler of every request. It recovers from panics itself, so that
// they are recorded with their status.
func (o observer) observe(c *gin.Context) {
	start := time.Now()
	defer func() {
		p := recover()
		if p != nil && p != http.ErrAbortHandler && !c.Writer.Written() { //nolint:errorlint // see edge.AnswerPanic
			edge.AnswerPanic(c.Writer, c.Request, p, false)
			p = nil
		}
		took := time.Since(start)
		o.metrics.countRequest(c, took)
		logAccess(c, took)
		o.audit.auditRequest(c, edge.Remote(c.Request))
		if p != nil {
			panic(p)
		}
	}()
	c.Next()
}

// logAccess writes the access log. It omits the query string and all headers, because
// they can contain secrets.
func logAccess(c *gin.Context, took time.Duration) {
	e := zerolog.Ctx(c.Request.Context()).Info()
	if by, known := c.Get(callerKey); known {
		by := by.(app.Caller)
		e.Str("organization", by.Organization).Str("key", by.KeyID)
	}
	e.Str("method", c.Request.Method).
		Str("path", respond.Redact(c.Request.URL.Path)).
		Str("remote", edge.Remote(c.Request)).
		Int("status", c.Writer.Status()).
		Int("bytes", max(0, c.Writer.Size())).
		Dur("took", took).
		Msg("request")
}

// requestMetrics counts and times requests.
type requestMetrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

// newRequestMetrics registers the request and process metrics.
func newRequestMetrics(registry *prometheus.Registry) *requestMetrics {
	m := &requestMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "molrun_http_requests_total",
			Help: "API requests by method, route and status.",
		}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "molrun_http_request_seconds",
			Help:    "Response time of API requests in seconds by route, including waiting for a job's change.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"route"}),
	}
	registry.MustRegister(m.requests, m.seconds)
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		_ = registry.Register(c) // fails only if already registered
	}
	return m
}

// countRequest counts one request. All requests without a route share one label, so that
// clients cannot create time series.
func (m *requestMetrics) countRequest(c *gin.Context, took time.Duration) {
	route, method := c.FullPath(), c.Request.Method
	if route == "" {
		route, method = "none", "any"
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(c.Writer.Status())).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}
