package web

import (
	_ "embed"
	"net/http"

	"github.com/gin-gonic/gin"

	"molrun/app/fault"
)

// APIVersion is the version of what openapi.yaml describes.
const APIVersion = "1.0.0"

//go:embed openapi.yaml
var openAPIText []byte

// OpenAPI gives the description of the API, as GET /openapi.yaml does.
func OpenAPI() []byte { return append([]byte(nil), openAPIText...) }

// openAPI handles GET /openapi.yaml.
func (a *API) openAPI(c *gin.Context) {
	writeBody(c.Writer, http.StatusOK, "application/yaml", openAPIText)
}

// healthz handles GET /healthz: the process answers.
func (a *API) healthz(c *gin.Context) { reply(c, map[string]string{"status": "ok"}) }

// version handles GET /version.
func (a *API) version(c *gin.Context) {
	reply(c, map[string]string{"version": a.options.Version, "apiVersion": APIVersion})
}

type readinessView struct {
	Status string         `json:"status"`
	Checks map[string]any `json:"checks"`
	Error  *errorObject   `json:"error,omitempty"`
}

// readyz handles GET /readyz: whether work can be taken now, and what was
// looked at to say so.
func (a *API) readyz(c *gin.Context) {
	checks, ready := a.options.Ready(ctx(c))
	if ready {
		reply(c, readinessView{Status: "ready", Checks: checks})
		return
	}
	c.Header("Retry-After", retryAfter[fault.Unavailable])
	writeJSON(c.Writer, http.StatusServiceUnavailable, readinessView{
		Status: "unready",
		Checks: checks,
		Error:  &errorObject{fault.Unavailable, "The service can't take work now; checks says why."},
	})
}
