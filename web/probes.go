package web

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/web/respond"
)

// APIVersion is the version of openapi.yaml. Additions do not change it.
const APIVersion = "1.0.0"

//go:embed openapi.yaml
var openAPIText []byte

// OpenAPI returns the API description that GET /openapi.yaml serves.
func OpenAPI() []byte { return append([]byte(nil), openAPIText...) }

// probes reports the state of the service itself.
type probes struct {
	build    string // version of this program
	ready    func(context.Context) (map[string]any, bool)
	registry *prometheus.Registry
	log      zerolog.Logger // for errors while collecting metrics
}

// openAPI handles GET /openapi.yaml.
func (h probes) openAPI(c *gin.Context, _ app.Caller) error {
	respond.Body(c.Writer, http.StatusOK, "application/yaml", openAPIText)
	return nil
}

// health handles GET /healthz: the process is responding.
func (h probes) health(c *gin.Context, _ app.Caller) error {
	return respond.JSON(c.Writer, http.StatusOK, map[string]string{"status": "ok"})
}

// version handles GET /version.
func (h probes) version(c *gin.Context, _ app.Caller) error {
	return respond.JSON(c.Writer, http.StatusOK, map[string]string{"version": h.build, "apiVersion": APIVersion})
}

type readinessView struct {
	Status string               `json:"status"`
	Checks map[string]any       `json:"checks"`
	Error  *respond.ErrorObject `json:"error,omitempty"`
}

// readiness handles GET /readyz: whether the service accepts work, and the checks on
// which that is based.
func (h probes) readiness(c *gin.Context, _ app.Caller) error {
	checks, ready := h.ready(c.Request.Context())
	if ready {
		return respond.JSON(c.Writer, http.StatusOK, readinessView{Status: "ready", Checks: checks})
	}
	respond.RetryAfter(c.Writer.Header(), fault.Unavailable)
	return respond.JSON(c.Writer, http.StatusServiceUnavailable, readinessView{
		Status: "unready",
		Checks: checks,
		Error:  &respond.ErrorObject{Code: fault.Unavailable, Message: "The service is not ready; see checks for the reason."},
	})
}

// metrics handles GET /metrics.
func (h probes) metrics(c *gin.Context, _ app.Caller) error {
	c.Header("Cache-Control", "no-store")
	promhttp.HandlerFor(h.registry, promhttp.HandlerOpts{ErrorLog: metricsLog{h.log}}).ServeHTTP(c.Writer, c.Request)
	return nil
}

// metricsLog logs errors while collecting metrics.
type metricsLog struct{ log zerolog.Logger }

// Println implements promhttp.Logger.
func (l metricsLog) Println(v ...any) {
	l.log.Error().Str("err", strings.TrimSpace(fmt.Sprintln(v...))).Msg("could not collect metrics")
}
