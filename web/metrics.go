package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
)

// requestMetrics counts and times requests.
type requestMetrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

// newRequestMetrics registers the metrics of requests and of the process.
func newRequestMetrics(registry *prometheus.Registry) *requestMetrics {
	m := &requestMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "molrun_http_requests_total",
			Help: "Requests to the API by method, route and status.",
		}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "molrun_http_request_seconds",
			Help:    "Time to answer requests to the API by route; waiting for a job's change counts.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"route"}),
	}
	registry.MustRegister(m.requests, m.seconds)
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		_ = registry.Register(c) // fails only if it is registered already
	}
	return m
}

// add counts one request. Requests without a route share one name, so that
// clients cannot create series.
func (m *requestMetrics) add(c *gin.Context, took time.Duration) {
	route, method := c.FullPath(), c.Request.Method
	if route == "" {
		route, method = "none", "any"
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(c.Writer.Status())).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}

// metrics shows the metrics of a registry.
type metrics struct {
	registry *prometheus.Registry
	log      zerolog.Logger
}

// show handles GET /metrics.
func (h metrics) show(c *gin.Context) error {
	c.Header("Cache-Control", "no-store")
	promhttp.HandlerFor(h.registry, promhttp.HandlerOpts{ErrorLog: metricsLog{h.log}}).ServeHTTP(c.Writer, c.Request)
	return nil
}

// metricsLog writes errors of gathering metrics to the log.
type metricsLog struct{ log zerolog.Logger }

// Println implements promhttp.Logger.
func (l metricsLog) Println(v ...any) {
	l.log.Error().Str("err", strings.TrimSpace(fmt.Sprintln(v...))).Msg("metrics not gathered")
}
