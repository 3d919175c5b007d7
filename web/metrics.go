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

// observed is what GET /metrics tells of requests.
type observed struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

// observe registers the metrics of requests and of the process. Collectors
// that are registered already stay as they are.
func observe(registry *prometheus.Registry) *observed {
	o := &observed{
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
	registry.MustRegister(o.requests, o.seconds)
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		_ = registry.Register(c) // the one error is that it is there already
	}
	return o
}

// request counts one request. Those without a route share a name, so that
// clients can't make up series.
func (o *observed) request(c *gin.Context, took time.Duration) {
	route, method := c.FullPath(), c.Request.Method
	if route == "" {
		route, method = "none", "any"
	}
	o.requests.WithLabelValues(method, route, strconv.Itoa(c.Writer.Status())).Inc()
	o.seconds.WithLabelValues(route).Observe(took.Seconds())
}

// metrics handles GET /metrics.
func (a *API) metrics(c *gin.Context) {
	c.Header("Cache-Control", "no-store")
	promhttp.HandlerFor(a.options.Registry, promhttp.HandlerOpts{ErrorLog: metricsLog{a.options.Log}}).
		ServeHTTP(c.Writer, c.Request)
}

// metricsLog writes what goes wrong while metrics are gathered.
type metricsLog struct{ log zerolog.Logger }

// Println implements promhttp.Logger.
func (l metricsLog) Println(v ...any) {
	l.log.Error().Str("err", strings.TrimSpace(fmt.Sprintln(v...))).Msg("metrics not gathered")
}
